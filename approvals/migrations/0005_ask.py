"""What a form asks for, beside approvals of a candidate: its kind, its answer, and what was filled in."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

#: What moves of a request; everything else of it is frozen.
MOVING = (
    "status,answer,answered_at,used_by,used_at,requester_id,step,given,escalated,audiences,claimed_by_id,claimed_label,claimed_at"
)

MOVED = f"""
CREATE OR REPLACE FUNCTION outlast_approval_request_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    source text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        source := OLD.status;
        IF to_jsonb(OLD) - '{{{MOVING}}}'::text[] <> to_jsonb(NEW) - '{{{MOVING}}}'::text[]
            OR (OLD.answer <> '' AND (OLD.answer, OLD.answered_at) IS DISTINCT FROM (NEW.answer, NEW.answered_at))
            OR (OLD.used_by IS NOT NULL AND (OLD.used_by, OLD.used_at) IS DISTINCT FROM (NEW.used_by, NEW.used_at))
            OR (NEW.requester_id IS NOT NULL AND NEW.requester_id IS DISTINCT FROM OLD.requester_id)
            OR (NEW.step, NEW.escalated) < (OLD.step, OLD.escalated)
            OR (OLD.status <> 'pending' AND (OLD.step, OLD.given, OLD.escalated, OLD.audiences) IS DISTINCT FROM
                (NEW.step, NEW.given, NEW.escalated, NEW.audiences))
        THEN
            RAISE EXCEPTION 'outlast: approval request % is frozen: only its status, its answer, its use and what is pending of it may be written',
                OLD.id USING ERRCODE = 'OL006';
        END IF;
    END IF;
    IF source <> NEW.status AND NOT (source || '>' || NEW.status) = ANY ('{{
        >pending,
        pending>answered,pending>approved,pending>denied,pending>changes_requested,pending>superseded,pending>expired,pending>cancelled,pending>invalidated,
        approved>consumed,approved>revoked,approved>expired,approved>invalidated,
        changes_requested>superseded
        }}'::text[]) THEN
        RAISE EXCEPTION 'outlast: illegal move of approval request % from % to %', NEW.id, source, NEW.status USING ERRCODE = 'OL003';
    END IF;
    RETURN NEW;
END $$;
"""

MOVED_BEFORE = f"""
CREATE OR REPLACE FUNCTION outlast_approval_request_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    source text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        source := OLD.status;
        IF to_jsonb(OLD) - '{{{MOVING}}}'::text[] <> to_jsonb(NEW) - '{{{MOVING}}}'::text[]
            OR (OLD.answer <> '' AND (OLD.answer, OLD.answered_at) IS DISTINCT FROM (NEW.answer, NEW.answered_at))
            OR (OLD.used_by IS NOT NULL AND (OLD.used_by, OLD.used_at) IS DISTINCT FROM (NEW.used_by, NEW.used_at))
            OR (NEW.requester_id IS NOT NULL AND NEW.requester_id IS DISTINCT FROM OLD.requester_id)
            OR (NEW.step, NEW.escalated) < (OLD.step, OLD.escalated)
            OR (OLD.status <> 'pending' AND (OLD.step, OLD.given, OLD.escalated, OLD.audiences) IS DISTINCT FROM
                (NEW.step, NEW.given, NEW.escalated, NEW.audiences))
        THEN
            RAISE EXCEPTION 'outlast: approval request % is frozen: only its status, its answer, its use and what is pending of it may be written',
                OLD.id USING ERRCODE = 'OL006';
        END IF;
    END IF;
    IF source <> NEW.status AND NOT (source || '>' || NEW.status) = ANY ('{{
        >pending,
        pending>approved,pending>denied,pending>changes_requested,pending>superseded,pending>expired,pending>cancelled,pending>invalidated,
        approved>consumed,approved>revoked,approved>expired,approved>invalidated,
        changes_requested>superseded
        }}'::text[]) THEN
        RAISE EXCEPTION 'outlast: illegal move of approval request % from % to %', NEW.id, source, NEW.status USING ERRCODE = 'OL003';
    END IF;
    RETURN NEW;
END $$;
"""

STATUSES = [
    "pending",
    "answered",
    "approved",
    "denied",
    "changes_requested",
    "superseded",
    "consumed",
    "revoked",
    "expired",
    "cancelled",
    "invalidated",
]

OF_APPROVALS = Q(
    ("kind", "approval"),
    ("answers__contained_by", ["approved", "changes", "denied", "narrowed"]),
    ("answers__len__gte", 1),
    ~Q(status="answered"),
)
OF_ASKS = Q(
    ("kind", "ask"), ("answers", ["answered"]), ("status__in", ["answered", "cancelled", "expired", "invalidated", "pending"])
)

ANSWERED = Q(
    Q(("status__in", ["pending", "cancelled", "expired", "invalidated"]), ("answer", ""), ("answered_at__isnull", True)),
    Q(("answer", "changes"), ("answered_at__isnull", False), ("status", "changes_requested")),
    Q(("answer", "denied"), ("answered_at__isnull", False), ("status", "denied")),
    Q(("answer", "narrowed"), ("answered_at__isnull", False), ("status", "superseded")),
    Q(("answer", "answered"), ("answered_at__isnull", False), ("status", "answered")),
    Q(("answer", "changes"), ("answered_at__isnull", False), ("status", "superseded")),
    Q(
        ("answer", "approved"),
        ("answered_at__isnull", False),
        ("status__in", ["approved", "consumed", "expired", "invalidated", "revoked"]),
    ),
    _connector="OR",
)
COUNTS = Q(refused="", verdict__in=["answer", "approve", "changes", "deny", "narrow"])


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_approvals", "0004_notices"),
        ("outlast_flows", "0007_ask"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="request", name="outlast_approval_request_answers"),
        migrations.RemoveConstraint(model_name="request", name="outlast_approval_request_status"),
        migrations.RemoveConstraint(model_name="request", name="outlast_approval_request_answer"),
        migrations.RemoveConstraint(model_name="review", name="outlast_review_by_once"),
        migrations.RemoveConstraint(model_name="review", name="outlast_review_for_once"),
        migrations.AddField(
            "request",
            "kind",
            models.TextField(choices=[("approval", "approval"), ("ask", "question")], default="approval", verbose_name="kind"),
            preserve_default=False,
        ),
        migrations.AddField("review", "values", models.JSONField(null=True, verbose_name="values")),
        migrations.AlterField(
            model_name="request",
            name="status",
            field=models.TextField(
                choices=[
                    ("pending", "pending"),
                    ("answered", "answered"),
                    ("approved", "approved"),
                    ("denied", "denied"),
                    ("changes_requested", "changes requested"),
                    ("consumed", "approved and used"),
                    ("expired", "expired"),
                    ("cancelled", "withdrawn"),
                    ("superseded", "changes requested, asked anew"),
                    ("revoked", "approval taken back"),
                    ("invalidated", "no longer valid"),
                ],
                verbose_name="status",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(name="outlast_approval_request_status", condition=Q(status__in=STATUSES)),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                name="outlast_approval_request_kind", condition=Q(OF_APPROVALS, OF_ASKS, _connector="OR")
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(name="outlast_approval_request_answer", condition=ANSWERED),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.UniqueConstraint(fields=["request", "by"], name="outlast_review_by_once", condition=COUNTS),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.UniqueConstraint(fields=["request", "for_user"], name="outlast_review_for_once", condition=COUNTS),
        ),
        migrations.RunSQL(MOVED, MOVED_BEFORE),
    ]
