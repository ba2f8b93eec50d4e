"""What stays of deleted runs: their keys, and where their archive is; and how far retention is."""

from django.conf import settings
from django.db import migrations, models

#: A start whose statement began before a run was deleted has not seen the key that was kept then: it is refused, and begun anew.
KEYS = """
CREATE FUNCTION outlast_key_free() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.key IS NOT NULL THEN
        PERFORM FROM outlast_key WHERE flow = NEW.flow_name AND key = NEW.key;
        IF FOUND THEN
            RAISE EXCEPTION 'outlast: the run of % with this key was just deleted by retention; start again to be answered with it',
                NEW.flow_name USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER outlast_workflow_key_free AFTER INSERT ON outlast_workflow
    FOR EACH ROW EXECUTE FUNCTION outlast_key_free();
CREATE TRIGGER outlast_key_append_only BEFORE UPDATE OR DELETE ON outlast_key
    FOR EACH ROW EXECUTE FUNCTION outlast_append_only();
CREATE TRIGGER outlast_key_no_truncate BEFORE TRUNCATE ON outlast_key
    FOR EACH STATEMENT EXECUTE FUNCTION outlast_append_only();
INSERT INTO outlast_retention (id, next_at) VALUES (1, statement_timestamp() + interval '10 minutes');
"""

UNDO = """
DELETE FROM outlast_retention;
DROP TRIGGER outlast_key_no_truncate ON outlast_key;
DROP TRIGGER outlast_key_append_only ON outlast_key;
DROP TRIGGER outlast_workflow_key_free ON outlast_workflow;
DROP FUNCTION outlast_key_free();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_flows", "0018_chains"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Archived",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("flow", models.TextField(verbose_name="flow")),
                ("key", models.TextField(null=True, verbose_name="key")),
                ("user_key", models.TextField(blank=True, db_default="", default="")),
                ("status", models.TextField(verbose_name="status")),
                ("ended_at", models.DateTimeField(verbose_name="ended")),
                ("archived_at", models.DateTimeField(verbose_name="archived")),
                ("digest", models.TextField()),
                ("file", models.TextField(blank=True, db_default="", default="")),
                ("record", models.JSONField(null=True)),
            ],
            options={
                "db_table": "outlast_archive",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="KeptKey",
            fields=[
                ("pk", models.CompositePrimaryKey("flow", "key", blank=True, editable=False, primary_key=True, serialize=False)),
                ("flow", models.TextField(verbose_name="flow")),
                ("key", models.TextField(verbose_name="key")),
                ("input_digest", models.TextField()),
                ("workflow_id", models.UUIDField()),
                ("intent_id", models.UUIDField()),
                ("status", models.TextField(verbose_name="status")),
                ("outcome", models.TextField(verbose_name="outcome")),
                ("ended_at", models.DateTimeField(verbose_name="ended")),
                ("deleted_at", models.DateTimeField(verbose_name="deleted")),
            ],
            options={
                "db_table": "outlast_key",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="RetentionLook",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("next_at", models.DateTimeField()),
                ("after_at", models.DateTimeField(null=True)),
                ("after_id", models.UUIDField(null=True)),
                ("spans", models.JSONField(db_default={}, default=dict)),
                ("deleted", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                "db_table": "outlast_retention",
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(condition=models.Q(("parent__isnull", False)), fields=["parent"], name="outlast_workflow_parent"),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("status__in", ["cancelled", "complete", "failed", "superseded"])),
                fields=["created_at", "id"],
                name="outlast_workflow_ended",
            ),
        ),
        migrations.AddIndex(
            model_name="archived",
            index=models.Index(condition=models.Q(("key__isnull", False)), fields=["flow", "key"], name="outlast_archive_key"),
        ),
        migrations.AddIndex(
            model_name="archived",
            index=models.Index(
                condition=models.Q(("user_key", ""), _negated=True), fields=["user_key"], name="outlast_archive_user"
            ),
        ),
        migrations.RunSQL(KEYS, UNDO),
    ]
