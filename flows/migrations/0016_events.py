"""Events (docs/decisions/0006, A): parts of waits, streams, redeliveries, and the indexes of the inbox."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

#: Nothing fills a part of a wait that is closed, whichever statement has closed it.
CLOSED = """
CREATE FUNCTION outlast_wait_closed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE outlast_wait_part SET open = false WHERE wait_id = NEW.id AND open;
    RETURN NULL;
END $$;

CREATE TRIGGER outlast_wait_closed AFTER UPDATE OF closed_at ON outlast_wait
    FOR EACH ROW WHEN (NEW.need > 0 AND OLD.closed_at IS NULL AND NEW.closed_at IS NOT NULL) EXECUTE FUNCTION outlast_wait_closed();
"""

#: Who had an event delivered again, and why, is kept; a user that is deleted leaves their label.
KEPT = """
CREATE FUNCTION outlast_redelivery_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
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
    RAISE EXCEPTION 'outlast: % of % is refused: redeliveries are append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;

CREATE TRIGGER outlast_redelivery_append_only BEFORE UPDATE OR DELETE ON outlast_redelivery
    FOR EACH ROW EXECUTE FUNCTION outlast_redelivery_append_only();
CREATE TRIGGER outlast_redelivery_no_truncate BEFORE TRUNCATE ON outlast_redelivery
    FOR EACH STATEMENT EXECUTE FUNCTION outlast_redelivery_append_only();
"""

UNDO = """
DROP TRIGGER outlast_redelivery_no_truncate ON outlast_redelivery;
DROP TRIGGER outlast_redelivery_append_only ON outlast_redelivery;
DROP FUNCTION outlast_redelivery_append_only();
DROP TRIGGER outlast_wait_closed ON outlast_wait;
DROP FUNCTION outlast_wait_closed();
"""

#: What came before there were places. (What was taken needs none: there is nothing to be done about it.)
PLACED = """
UPDATE outlast_event SET place = CASE status WHEN 'pending' THEN 'early' ELSE 'conflict' END WHERE status IN ('pending', 'conflict');
"""


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_flows", "0015_children"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Part",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("wait_id", models.BigIntegerField()),
                ("workflow_id", models.UUIDField()),
                ("number", models.IntegerField()),
                ("name", models.TextField(verbose_name="name")),
                ("event_type", models.TextField(verbose_name="event type")),
                ("key", models.TextField(verbose_name="key")),
                ("event_id", models.BigIntegerField(null=True)),
                ("evidence", models.JSONField(null=True, verbose_name="evidence")),
                ("open", models.BooleanField(verbose_name="open")),
            ],
            options={
                "db_table": "outlast_wait_part",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Redelivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("copy_id", models.BigIntegerField(null=True)),
                ("status", models.TextField(verbose_name="status before")),
                ("place", models.TextField(blank=True, verbose_name="place before")),
                ("wait_id", models.BigIntegerField(null=True)),
                ("woken", models.IntegerField(verbose_name="woken")),
                ("reason", models.TextField(verbose_name="reason")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("at", models.DateTimeField(verbose_name="at")),
            ],
            options={
                "verbose_name": "redelivery",
                "verbose_name_plural": "redeliveries",
                "db_table": "outlast_redelivery",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Stream",
            fields=[
                ("pk", models.CompositePrimaryKey("type", "key", blank=True, editable=False, primary_key=True, serialize=False)),
                ("type", models.TextField()),
                ("key", models.TextField()),
                ("position", models.BigIntegerField()),
            ],
            options={
                "db_table": "outlast_stream",
                "default_permissions": (),
            },
        ),
        migrations.AlterModelOptions(
            name="event",
            options={"default_permissions": ("view",), "permissions": [("redeliver_event", "Can have an event delivered again")]},
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("place__in", ["ended", "superseded"]), ("status", "aside")),
                fields=["type", "key"],
                name="outlast_event_late",
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("place__in", ["early", "between", "unknown", "gap"]), ("status", "pending")),
                fields=["observed_at"],
                name="outlast_event_unclaimed",
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(condition=models.Q(("status", "held")), fields=["held_until"], name="outlast_event_held"),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(("status", "held")), fields=["type", "key", "position"], name="outlast_event_stream"
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                condition=models.Q(
                    models.Q(("place", ""), _negated=True), models.Q(("place__in", ["taken", "started"]), _negated=True)
                ),
                fields=["place", "-id"],
                name="outlast_event_place",
            ),
        ),
        migrations.AddIndex(
            model_name="wait",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", False), models.Q(("event_type", ""), _negated=True)),
                fields=["event_type", "key", "id"],
                name="outlast_wait_was_channel",
            ),
        ),
        migrations.AddIndex(
            model_name="part",
            index=models.Index(
                condition=models.Q(("open", True)), fields=["event_type", "key"], name="outlast_wait_part_channel"
            ),
        ),
        migrations.AddIndex(
            model_name="part",
            index=models.Index(
                condition=models.Q(("open", False)), fields=["event_type", "key", "wait_id"], name="outlast_wait_part_was"
            ),
        ),
        migrations.AddConstraint(
            model_name="part",
            constraint=models.UniqueConstraint(fields=("wait_id", "number"), name="outlast_wait_part_once"),
        ),
        migrations.AddField(
            model_name="redelivery",
            name="by",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="redelivery",
            name="event",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="redeliveries",
                to="outlast_flows.event",
            ),
        ),
        migrations.RunSQL(CLOSED + KEPT, UNDO),
        migrations.RunSQL(PLACED, migrations.RunSQL.noop),
    ]
