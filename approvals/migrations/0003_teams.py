"""Several reviewers of one request: ladder, quorum, pools, delegation, claims; and the words for what becomes of a request."""

from typing import Any

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q

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
        pending>approved,pending>denied,pending>changes_requested,pending>superseded,pending>expired,pending>cancelled,pending>invalidated,
        approved>consumed,approved>revoked,approved>expired,approved>invalidated,
        changes_requested>superseded
        }}'::text[]) THEN
        RAISE EXCEPTION 'outlast: illegal move of approval request % from % to %', NEW.id, source, NEW.status USING ERRCODE = 'OL003';
    END IF;
    RETURN NEW;
END $$;
"""

#: A request of one role becomes a ladder of one step; its digest is that of `Approval(role=…)` (canonical JSON: sorted, without spaces).
FILL = """
ALTER TABLE outlast_approval_request DISABLE TRIGGER outlast_approval_request_moved;
UPDATE outlast_approval_request SET
    steps = jsonb_build_array(jsonb_build_object('name', role, 'need', 1, 'audience', jsonb_build_object('role', role))),
    audiences = ARRAY['{"role":' || to_json(role)::text || '}'],
    ladder = 'sha256:' || encode(sha256(convert_to('{"escalation":[],"steps":[{"audience":{"role":' || to_json(role)::text
        || '},"name":"","need":1,"when":""}]}', 'UTF8')), 'hex'),
    given = CASE WHEN answer = 'approved' THEN 1 ELSE 0 END,
    status = CASE status WHEN 'withdrawn' THEN 'cancelled' ELSE status END;
ALTER TABLE outlast_approval_request ENABLE TRIGGER outlast_approval_request_moved;
"""

EMPTY = """
ALTER TABLE outlast_approval_request DISABLE TRIGGER outlast_approval_request_moved;
UPDATE outlast_approval_request SET
    role = coalesce(steps->0->'audience'->>'role', steps->0->>'name'),
    status = CASE status WHEN 'cancelled' THEN 'withdrawn' WHEN 'superseded' THEN 'changes_requested' WHEN 'revoked' THEN 'invalidated'
        ELSE status END;
ALTER TABLE outlast_approval_request ENABLE TRIGGER outlast_approval_request_moved;
"""

#: A review loses its links to users that are deleted (the labels stay), and nothing else of it changes.
APPEND_ONLY = """
CREATE OR REPLACE FUNCTION outlast_review_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF to_jsonb(NEW) - '{by_id,for_user_id}'::text[] = to_jsonb(OLD) - '{by_id,for_user_id}'::text[]
            AND coalesce(NEW.by_id = OLD.by_id, NEW.by_id IS NULL) AND coalesce(NEW.for_user_id = OLD.for_user_id, NEW.for_user_id IS NULL)
        THEN
            RETURN NEW;
        END IF;
    ELSIF current_setting('outlast.retention', true) = 'on' THEN
        RETURN OLD;
    ELSIF TG_OP = 'TRUNCATE' AND left(current_database(), 5) = 'test_' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'outlast: % of % is refused: what people answered is append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;
"""

#: A delegation says for ever who stood in for whom: it may be revoked, once, and lose its links to users that are deleted.
DELEGATION = """
CREATE FUNCTION outlast_delegation_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF to_jsonb(NEW) - '{giver_id,taker_id,revoked_at,revoked_by_label}'::text[]
                = to_jsonb(OLD) - '{giver_id,taker_id,revoked_at,revoked_by_label}'::text[]
            AND coalesce(NEW.giver_id = OLD.giver_id, NEW.giver_id IS NULL) AND coalesce(NEW.taker_id = OLD.taker_id, NEW.taker_id IS NULL)
            AND (OLD.revoked_at IS NULL OR (OLD.revoked_at, OLD.revoked_by_label) = (NEW.revoked_at, NEW.revoked_by_label))
        THEN
            RETURN NEW;
        END IF;
    ELSIF current_setting('outlast.retention', true) = 'on' THEN
        RETURN OLD;
    ELSIF TG_OP = 'TRUNCATE' AND left(current_database(), 5) = 'test_' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'outlast: % of % is refused: a delegation is kept, and may only be revoked (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;

CREATE TRIGGER outlast_delegation_kept BEFORE UPDATE OR DELETE ON outlast_delegation
    FOR EACH ROW EXECUTE FUNCTION outlast_delegation_kept();
CREATE TRIGGER outlast_delegation_no_truncate BEFORE TRUNCATE ON outlast_delegation
    FOR EACH STATEMENT EXECUTE FUNCTION outlast_delegation_kept();
"""
DELEGATION_UNDO = """
DROP TRIGGER outlast_delegation_no_truncate ON outlast_delegation;
DROP TRIGGER outlast_delegation_kept ON outlast_delegation;
DROP FUNCTION outlast_delegation_kept();
"""

MOVED_BEFORE = """
CREATE OR REPLACE FUNCTION outlast_approval_request_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    source text := '';
    frozen jsonb;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        source := OLD.status;
        frozen := to_jsonb(OLD) - '{status,answer,answered_at,used_by,used_at,requester_id}'::text[];
        IF frozen <> to_jsonb(NEW) - '{status,answer,answered_at,used_by,used_at,requester_id}'::text[]
            OR (OLD.answer <> '' AND (OLD.answer, OLD.answered_at) IS DISTINCT FROM (NEW.answer, NEW.answered_at))
            OR (OLD.used_by IS NOT NULL AND (OLD.used_by, OLD.used_at) IS DISTINCT FROM (NEW.used_by, NEW.used_at))
            OR (NEW.requester_id IS NOT NULL AND NEW.requester_id IS DISTINCT FROM OLD.requester_id)
        THEN
            RAISE EXCEPTION 'outlast: approval request % is frozen: only its status, its answer and its use may be written, once', OLD.id
                USING ERRCODE = 'OL006';
        END IF;
    END IF;
    IF source <> NEW.status AND NOT (source || '>' || NEW.status) = ANY ('{
        >pending,
        pending>approved,pending>denied,pending>changes_requested,pending>expired,pending>withdrawn,pending>invalidated,
        approved>consumed,approved>expired,approved>invalidated
        }'::text[]) THEN
        RAISE EXCEPTION 'outlast: illegal move of approval request % from % to %', NEW.id, source, NEW.status USING ERRCODE = 'OL003';
    END IF;
    RETURN NEW;
END $$;
"""

APPEND_ONLY_BEFORE = """
CREATE OR REPLACE FUNCTION outlast_review_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.by_id IS NULL AND to_jsonb(NEW) - 'by_id' = to_jsonb(OLD) - 'by_id' THEN
            RETURN NEW;
        END IF;
    ELSIF current_setting('outlast.retention', true) = 'on' THEN
        RETURN OLD;
    ELSIF TG_OP = 'TRUNCATE' AND left(current_database(), 5) = 'test_' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'outlast: % of % is refused: what people answered is append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;
"""

STATUSES = [
    "pending",
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

ANSWERED = Q(
    Q(("status__in", ["pending", "cancelled", "expired", "invalidated"]), ("answer", ""), ("answered_at__isnull", True)),
    Q(("answer", "changes"), ("answered_at__isnull", False), ("status", "changes_requested")),
    Q(("answer", "denied"), ("answered_at__isnull", False), ("status", "denied")),
    Q(("answer", "narrowed"), ("answered_at__isnull", False), ("status", "superseded")),
    Q(("answer", "changes"), ("answered_at__isnull", False), ("status", "superseded")),
    Q(
        ("answer", "approved"),
        ("answered_at__isnull", False),
        ("status__in", ["approved", "consumed", "expired", "invalidated", "revoked"]),
    ),
    _connector="OR",
)
COUNTS = Q(refused="", verdict__in=["approve", "changes", "deny", "narrow"])


def _user(verbose_name: str) -> Any:
    return models.ForeignKey(
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
        verbose_name=verbose_name,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_approvals", "0002_guards"),
        ("outlast_flows", "0005_people"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Delegation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("giver", _user("from")),
                ("giver_label", models.TextField(verbose_name="from")),
                ("taker", _user("to")),
                ("taker_label", models.TextField(verbose_name="to")),
                ("starts_at", models.DateTimeField(verbose_name="from the moment")),
                ("ends_at", models.DateTimeField(verbose_name="until")),
                ("role", models.TextField(blank=True, verbose_name="only for the role")),
                ("pool", models.TextField(blank=True, verbose_name="only for the pool")),
                ("flow", models.TextField(blank=True, verbose_name="only for the flow")),
                ("reason", models.TextField(verbose_name="reason")),
                ("made_by_label", models.TextField(verbose_name="made by")),
                ("made_at", models.DateTimeField(verbose_name="made")),
                ("revoked_at", models.DateTimeField(null=True, verbose_name="revoked")),
                ("revoked_by_label", models.TextField(blank=True, verbose_name="revoked by")),
            ],
            options={
                "verbose_name": "delegation",
                "verbose_name_plural": "delegations",
                "db_table": "outlast_delegation",
                "default_permissions": ("view",),
                "permissions": [
                    ("delegate_own", "Can delegate their own place among reviewers"),
                    ("delegate_any", "Can make and revoke delegations of others"),
                ],
                "constraints": [
                    models.CheckConstraint(name="outlast_delegation_dated", condition=Q(ends_at__gt=F("starts_at"))),
                    models.CheckConstraint(name="outlast_delegation_to_another", condition=~Q(giver=F("taker"))),
                ],
                "indexes": [
                    models.Index(
                        fields=["taker", "ends_at"],
                        name="outlast_delegation_of_taker",
                        condition=Q(revoked_at__isnull=True),
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Pool",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField(unique=True, verbose_name="name")),
                (
                    "note",
                    models.TextField(
                        blank=True, help_text="What these people are asked about; shown to administrators.", verbose_name="note"
                    ),
                ),
                (
                    "members",
                    models.ManyToManyField(
                        blank=True,
                        db_table="outlast_approval_pool_member",
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="members",
                    ),
                ),
            ],
            options={
                "verbose_name": "reviewer pool",
                "verbose_name_plural": "reviewer pools",
                "db_table": "outlast_approval_pool",
            },
        ),
        migrations.AlterModelOptions(
            name="request",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("answer_request", "Can answer approval requests"),
                    ("assign_request", "Can say who looks at an approval request"),
                    ("revoke_request", "Can take back approvals that are not used"),
                ],
                "verbose_name": "approval request",
                "verbose_name_plural": "approval requests",
            },
        ),
        migrations.RemoveConstraint(model_name="request", name="outlast_approval_request_status"),
        migrations.RemoveConstraint(model_name="request", name="outlast_approval_request_answer"),
        migrations.RemoveIndex(model_name="request", name="outlast_approval_request_inbox"),
        migrations.AddField("request", "steps", models.JSONField(default=list, verbose_name="steps"), preserve_default=False),
        migrations.AddField("request", "escalation", models.JSONField(default=list, verbose_name="escalation")),
        migrations.AddField("request", "ladder", models.TextField(default=""), preserve_default=False),
        migrations.AddField(
            "request",
            "subset",
            models.TextField(blank=True, default="", verbose_name="reviewers may keep a part of"),
            preserve_default=False,
        ),
        migrations.AddField("request", "bulk", models.BooleanField(default=False, verbose_name="may be approved in bulk")),
        migrations.AddField("request", "step", models.IntegerField(default=0)),
        migrations.AddField("request", "given", models.IntegerField(default=0)),
        migrations.AddField("request", "escalated", models.IntegerField(default=0)),
        migrations.AddField(
            "request",
            "audiences",
            django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None),
            preserve_default=False,
        ),
        migrations.AddField("request", "claimed_by", _user("looked at by")),
        migrations.AddField("request", "claimed_label", models.TextField(blank=True, default=""), preserve_default=False),
        migrations.AddField("request", "claimed_at", models.DateTimeField(null=True)),
        migrations.AlterField(
            model_name="request",
            name="role",
            field=models.TextField(default="", verbose_name="role"),
        ),
        migrations.RunSQL(FILL, EMPTY),
        migrations.RemoveField(model_name="request", name="role"),
        migrations.AlterField(
            model_name="request",
            name="status",
            field=models.TextField(
                choices=[
                    ("pending", "pending"),
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
        migrations.AddIndex(
            model_name="request",
            index=models.Index(fields=["expires_at", "id"], name="outlast_approval_request_inbox", condition=Q(status="pending")),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(name="outlast_approval_request_status", condition=Q(status__in=STATUSES)),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(name="outlast_approval_request_answer", condition=ANSWERED),
        ),
        migrations.RemoveConstraint(model_name="request", name="outlast_approval_request_answers"),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                name="outlast_approval_request_answers",
                condition=Q(answers__contained_by=["approved", "changes", "denied", "narrowed"], answers__len__gte=1),
            ),
        ),
        migrations.RemoveConstraint(model_name="review", name="outlast_review_taken_once"),
        migrations.AddField("review", "for_user", _user("in the name of")),
        migrations.AddField(
            "review",
            "for_label",
            models.TextField(blank=True, default="", verbose_name="in the name of"),
            preserve_default=False,
        ),
        migrations.AddField("review", "delegation_id", models.BigIntegerField(null=True)),
        migrations.AddField("review", "step", models.IntegerField(default=0)),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.UniqueConstraint(fields=["request", "by"], name="outlast_review_by_once", condition=COUNTS),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.UniqueConstraint(fields=["request", "for_user"], name="outlast_review_for_once", condition=COUNTS),
        ),
        migrations.RunSQL(MOVED + APPEND_ONLY + DELEGATION, DELEGATION_UNDO + APPEND_ONLY_BEFORE + MOVED_BEFORE),
    ]
