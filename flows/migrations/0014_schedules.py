"""Schedules and each of their moments; legal moves of an occurrence, against raw SQL too."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

#: From each status of an occurrence, those that one statement may lead to; the table of `flows.core.schedules.words`.
MOVED = """
CREATE FUNCTION outlast_occurrence_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    source text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        source := OLD.status;
        IF (OLD.id, OLD.schedule_id, OLD.scheduled_for, OLD.origin) IS DISTINCT FROM (NEW.id, NEW.schedule_id, NEW.scheduled_for, NEW.origin) THEN
            RAISE EXCEPTION 'outlast: which moment occurrence % is cannot be changed', OLD.id USING ERRCODE = 'OL006';
        END IF;
    END IF;
    IF NOT (source || '>' || NEW.status) = ANY ('{
        >pending,>skipped,
        pending>pending,pending>queued,pending>started,pending>skipped,pending>failed,
        queued>queued,queued>started,queued>skipped,queued>failed,
        started>started,started>done,started>failed,started>cancelled
        }'::text[]) THEN
        RAISE EXCEPTION 'outlast: illegal move of occurrence % from "%" to "%"', NEW.id, source, NEW.status USING ERRCODE = 'OL003';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER outlast_occurrence_moved BEFORE INSERT OR UPDATE ON outlast_occurrence
    FOR EACH ROW EXECUTE FUNCTION outlast_occurrence_moved();
"""

UNDO = """
DROP TRIGGER outlast_occurrence_moved ON outlast_occurrence;
DROP FUNCTION outlast_occurrence_moved();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_flows", "0013_capacity"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField(unique=True, verbose_name="name")),
                ("origin", models.TextField(choices=[("code", "code"), ("record", "record")], verbose_name="origin")),
                ("revision", models.IntegerField(verbose_name="revision")),
                ("flow_name", models.TextField(verbose_name="flow")),
                ("input", models.JSONField(verbose_name="input")),
                (
                    "kind",
                    models.TextField(
                        choices=[("cron", "Cron"), ("interval", "Interval"), ("once", "Once"), ("rule", "Rule")],
                        verbose_name="kind",
                    ),
                ),
                ("expression", models.TextField(verbose_name="when")),
                ("time_zone", models.TextField(verbose_name="time zone")),
                ("anchor", models.DateTimeField(null=True, verbose_name="counts from")),
                (
                    "repeated",
                    models.TextField(
                        blank=True,
                        choices=[("first", "First"), ("last", "Last"), ("both", "Both")],
                        verbose_name="repeated local times",
                    ),
                ),
                (
                    "missing",
                    models.TextField(
                        blank=True, choices=[("shift", "Shift"), ("skip", "Skip")], verbose_name="missing local times"
                    ),
                ),
                (
                    "missed",
                    models.TextField(
                        choices=[("every", "Every"), ("newest", "Newest"), ("skip", "Skip")], verbose_name="missed runs"
                    ),
                ),
                ("window", models.DurationField(null=True, verbose_name="window for missed runs")),
                ("cap", models.IntegerField(verbose_name="missed runs a second")),
                (
                    "overlap",
                    models.TextField(
                        choices=[
                            ("allow", "Allow"),
                            ("skip", "Skip"),
                            ("queue", "Queue"),
                            ("cancel_old", "Cancel old"),
                            ("supersede", "Supersede"),
                        ],
                        verbose_name="overlap",
                    ),
                ),
                ("cooldown", models.DurationField(null=True, verbose_name="cooldown")),
                ("jitter", models.DurationField(null=True, verbose_name="jitter")),
                (
                    "compute",
                    models.TextField(choices=[("claim", "Claim"), ("completion", "Completion")], verbose_name="computed at"),
                ),
                ("calendar", models.TextField(blank=True, verbose_name="calendar")),
                ("user_label", models.TextField(blank=True, verbose_name="accountable user")),
                ("priority", models.SmallIntegerField(verbose_name="priority")),
                ("tenant", models.TextField(blank=True, verbose_name="tenant")),
                ("paused_at", models.DateTimeField(null=True, verbose_name="paused since")),
                ("paused_by", models.TextField(blank=True, verbose_name="changed by")),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("held_until", models.DateTimeField(null=True)),
                ("planned_until", models.DateTimeField(verbose_name="planned until")),
                ("next_at", models.DateTimeField(null=True, verbose_name="next")),
                ("last_at", models.DateTimeField(null=True, verbose_name="last start")),
                ("overlapped", models.IntegerField(db_default=0, default=0)),
                ("digest", models.TextField(blank=True)),
                ("updated_at", models.DateTimeField(verbose_name="changed")),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="accountable user",
                    ),
                ),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "db_table": "outlast_schedule",
                "permissions": [("manage_schedule", "Can make, change, pause and run schedules")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Occurrence",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("scheduled_for", models.DateTimeField(verbose_name="scheduled for")),
                ("local", models.TextField(verbose_name="local time")),
                (
                    "origin",
                    models.TextField(
                        choices=[("planned", "Planned"), ("backfill", "Backfill"), ("manual", "Manual")], verbose_name="origin"
                    ),
                ),
                (
                    "status",
                    models.TextField(
                        choices=[
                            ("pending", "Pending"),
                            ("queued", "Queued"),
                            ("started", "Started"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("skipped", "Skipped"),
                        ],
                        verbose_name="status",
                    ),
                ),
                ("code", models.TextField(blank=True, verbose_name="code")),
                ("due_at", models.DateTimeField(verbose_name="due")),
                ("tries", models.SmallIntegerField(default=0, verbose_name="tries")),
                ("passed_to", models.DateTimeField(null=True, verbose_name="stands for all until")),
                ("revision", models.IntegerField(verbose_name="revision of the schedule")),
                ("planned_at", models.DateTimeField(verbose_name="planned")),
                ("started_at", models.DateTimeField(null=True, verbose_name="started")),
                ("ended_at", models.DateTimeField(null=True, verbose_name="ended")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="outlast_flows.workflow",
                        verbose_name="workflow",
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="occurrences",
                        to="outlast_flows.schedule",
                        verbose_name="schedule",
                    ),
                ),
            ],
            options={
                "verbose_name": "occurrence",
                "verbose_name_plural": "occurrences",
                "db_table": "outlast_occurrence",
                "default_permissions": ("view",),
            },
        ),
        migrations.AddIndex(
            model_name="schedule",
            index=models.Index(
                condition=models.Q(("next_at__isnull", False), ("paused_at__isnull", True)),
                fields=["next_at"],
                name="outlast_schedule_due",
            ),
        ),
        migrations.AddIndex(
            model_name="occurrence",
            index=models.Index(
                condition=models.Q(("status__in", ["pending", "queued"])), fields=["due_at"], name="outlast_occurrence_due"
            ),
        ),
        migrations.AddIndex(
            model_name="occurrence",
            index=models.Index(condition=models.Q(("status", "started")), fields=["schedule"], name="outlast_occurrence_started"),
        ),
        migrations.AddConstraint(
            model_name="occurrence",
            constraint=models.UniqueConstraint(fields=("schedule", "scheduled_for"), name="outlast_occurrence_once"),
        ),
        migrations.AddConstraint(
            model_name="occurrence",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "queued")), fields=("schedule",), name="outlast_occurrence_queued"
            ),
        ),
        migrations.AddConstraint(
            model_name="occurrence",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["pending", "queued", "started", "done", "failed", "cancelled", "skipped"])),
                name="outlast_occurrence_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="occurrence",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status__in", ["started", "done", "cancelled"]), _negated=True),
                    ("workflow__isnull", False),
                    _connector="OR",
                ),
                name="outlast_occurrence_run",
            ),
        ),
        migrations.RunSQL(MOVED, UNDO),
    ]
