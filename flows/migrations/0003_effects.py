"""Operations, what was answered about them, and commitments; legal moves of an operation and append-only answers, against raw SQL too."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

#: From each status of an operation, those that one statement may lead to; the table of `flows.core.effects`.
OPERATION_MOVED = """
CREATE FUNCTION outlast_operation_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    source text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        source := OLD.status;
        IF (OLD.id, OLD.workflow_id, OLD.kind, OLD.request_digest) IS DISTINCT FROM (NEW.id, NEW.workflow_id, NEW.kind, NEW.request_digest) THEN
            RAISE EXCEPTION 'outlast: what operation % is, and what it asks for, cannot be changed', OLD.id USING ERRCODE = 'OL006';
        END IF;
    END IF;
    IF source <> NEW.status AND NOT (source || '>' || NEW.status) = ANY ('{
        >planned,>in_flight,
        planned>in_flight,planned>abandoned,
        in_flight>succeeded,in_flight>failed,in_flight>uncertain,
        failed>in_flight,failed>abandoned,
        uncertain>succeeded,uncertain>failed,uncertain>planned,uncertain>abandoned,uncertain>in_flight,
        succeeded>compensated
        }'::text[]) THEN
        RAISE EXCEPTION 'outlast: illegal move of operation % from "%" to "%"', NEW.id, source, NEW.status USING ERRCODE = 'OL003';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER outlast_operation_moved BEFORE INSERT OR UPDATE ON outlast_operation
    FOR EACH ROW EXECUTE FUNCTION outlast_operation_moved();
"""

#: An answer loses its link to a user that is deleted (the label stays), and nothing else of it changes.
RESOLUTION_KEPT = """
CREATE FUNCTION outlast_resolution_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
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
    RAISE EXCEPTION 'outlast: % of % is refused: answers about an operation are append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;

CREATE TRIGGER outlast_resolution_append_only BEFORE UPDATE OR DELETE ON outlast_resolution
    FOR EACH ROW EXECUTE FUNCTION outlast_resolution_append_only();
CREATE TRIGGER outlast_resolution_no_truncate BEFORE TRUNCATE ON outlast_resolution
    FOR EACH STATEMENT EXECUTE FUNCTION outlast_resolution_append_only();
"""

UNDO = """
DROP TRIGGER outlast_resolution_no_truncate ON outlast_resolution;
DROP TRIGGER outlast_resolution_append_only ON outlast_resolution;
DROP FUNCTION outlast_resolution_append_only();
DROP TRIGGER outlast_operation_moved ON outlast_operation;
DROP FUNCTION outlast_operation_moved();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_flows", "0002_guards"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="timer",
            name="commitment_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="workflow",
            name="owed",
            field=models.IntegerField(db_default=0, default=0, verbose_name="owed"),
        ),
        migrations.AddField(
            model_name="workflow",
            name="target",
            field=models.TextField(blank=True, db_default="", default="", verbose_name="on the way to"),
        ),
        migrations.CreateModel(
            name="Commitment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("activity_seq", models.IntegerField()),
                ("node", models.TextField(verbose_name="node")),
                ("visit", models.IntegerField()),
                ("name", models.TextField(verbose_name="name")),
                ("kind", models.TextField(verbose_name="kind")),
                ("reference", models.TextField(blank=True, verbose_name="reference")),
                ("terms", models.JSONField(null=True, verbose_name="terms")),
                ("status", models.TextField(verbose_name="status")),
                ("releasable", models.BooleanField(verbose_name="has a release")),
                ("may_defer", models.BooleanField(verbose_name="may be deferred")),
                ("deadline_at", models.DateTimeField(null=True, verbose_name="deadline")),
                ("breached_at", models.DateTimeField(null=True, verbose_name="breached")),
                ("told_at", models.DateTimeField(null=True)),
                ("holder", models.TextField(blank=True, verbose_name="held by")),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("opened_at", models.DateTimeField(verbose_name="since")),
                ("closed_at", models.DateTimeField(null=True, verbose_name="closed")),
                ("closed_by", models.TextField(blank=True, verbose_name="closed by")),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="commitments",
                        to="outlast_flows.workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "commitment",
                "verbose_name_plural": "commitments",
                "db_table": "outlast_commitment",
                "permissions": [("service_commitment", "Can say that a commitment is fulfilled, transferred or deferred")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Operation",
            fields=[
                ("id", models.TextField(primary_key=True, serialize=False)),
                ("activity_seq", models.IntegerField()),
                ("node", models.TextField(verbose_name="node")),
                ("name", models.TextField(blank=True, verbose_name="name")),
                ("kind", models.TextField(verbose_name="kind")),
                ("status", models.TextField(verbose_name="status")),
                ("request", models.JSONField(null=True, verbose_name="request")),
                ("request_digest", models.TextField(blank=True, verbose_name="digest of the request")),
                ("attempt", models.IntegerField()),
                ("epoch", models.IntegerField()),
                ("intent_version", models.IntegerField()),
                ("compensable", models.BooleanField(default=False)),
                ("two_people", models.BooleanField(default=False)),
                ("again", models.BooleanField(default=False)),
                ("external_id", models.TextField(blank=True, verbose_name="the provider's id")),
                ("evidence", models.JSONField(null=True, verbose_name="evidence")),
                ("error_code", models.TextField(null=True)),
                ("flown_by", models.UUIDField(null=True)),
                ("flown_pid", models.IntegerField(null=True)),
                ("flown_at", models.DateTimeField(null=True, verbose_name="in flight since")),
                ("doubt_since", models.DateTimeField(null=True, verbose_name="in doubt since")),
                ("settled_at", models.DateTimeField(null=True)),
                ("settled_by", models.TextField(blank=True, verbose_name="settled by")),
                ("looks", models.IntegerField(default=0)),
                ("tries", models.IntegerField(default=0)),
                ("lost", models.IntegerField(default=0)),
                ("due_at", models.DateTimeField(null=True)),
                ("worker_id", models.UUIDField(null=True)),
                ("worker_pid", models.IntegerField(null=True)),
                ("timeout_at", models.DateTimeField(null=True)),
                (
                    "commitment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="operations",
                        to="outlast_flows.commitment",
                    ),
                ),
                (
                    "of",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="mitigations",
                        to="outlast_flows.operation",
                    ),
                ),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="operations",
                        to="outlast_flows.workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "operation",
                "verbose_name_plural": "operations",
                "db_table": "outlast_operation",
                "permissions": [("resolve_operation", "Can say what became of an uncertain effect")],
                "default_permissions": ("view",),
            },
        ),
        migrations.AddField(
            model_name="commitment",
            name="operation",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="commitments",
                to="outlast_flows.operation",
            ),
        ),
        migrations.CreateModel(
            name="Resolution",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("source", models.TextField(verbose_name="source")),
                ("answer", models.TextField(verbose_name="answer")),
                ("external_id", models.TextField(blank=True, verbose_name="the provider's id")),
                ("evidence", models.JSONField(null=True, verbose_name="evidence")),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("counted", models.BooleanField(verbose_name="counted")),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="resolutions",
                        to="outlast_flows.operation",
                    ),
                ),
            ],
            options={
                "verbose_name": "resolution",
                "verbose_name_plural": "resolutions",
                "db_table": "outlast_resolution",
                "default_permissions": ("view",),
            },
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(fields=["workflow", "activity_seq"], name="outlast_operation_of"),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False), ("worker_id__isnull", True)),
                fields=["due_at"],
                name="outlast_operation_due",
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("worker_id__isnull", False)), fields=["worker_id"], name="outlast_operation_owned"
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("status", "uncertain")), fields=["doubt_since"], name="outlast_operation_doubt"
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("due_at__isnull", True), ("kind__in", ["compensation", "release"]), ("status", "failed")),
                fields=["flown_at"],
                name="outlast_operation_stuck",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Value("operation"), models.F("status"), function="outlast_known", output_field=models.BooleanField()
                ),
                name="outlast_operation_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Value("operation kind"), models.F("kind"), function="outlast_known", output_field=models.BooleanField()
                ),
                name="outlast_operation_kind",
            ),
        ),
        migrations.AddIndex(
            model_name="commitment",
            index=models.Index(
                condition=models.Q(("status__in", ("planned", "active", "breached", "releasing"))),
                fields=["kind", "opened_at"],
                name="outlast_commitment_live",
            ),
        ),
        migrations.AddIndex(
            model_name="commitment",
            index=models.Index(
                condition=models.Q(("status", "breached"), ("told_at__isnull", True)),
                fields=["breached_at"],
                name="outlast_commitment_untold",
            ),
        ),
        migrations.AddIndex(
            model_name="commitment",
            index=models.Index(fields=["workflow"], name="outlast_commitment_of"),
        ),
        migrations.AddConstraint(
            model_name="commitment",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Value("commitment"), models.F("status"), function="outlast_known", output_field=models.BooleanField()
                ),
                name="outlast_commitment_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="commitment",
            constraint=models.UniqueConstraint(fields=("workflow", "node", "visit", "name"), name="outlast_commitment_once"),
        ),
        migrations.AddConstraint(
            model_name="resolution",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Value("resolution"), models.F("answer"), function="outlast_known", output_field=models.BooleanField()
                ),
                name="outlast_resolution_answer",
            ),
        ),
        migrations.AddConstraint(
            model_name="resolution",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Value("resolution source"),
                    models.F("source"),
                    function="outlast_known",
                    output_field=models.BooleanField(),
                ),
                name="outlast_resolution_source",
            ),
        ),
        migrations.RunSQL(OPERATION_MOVED + RESOLUTION_KEPT, UNDO),
    ]
