"""Named calendars, as versioned records. Append-only, against raw SQL too."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

TRIGGERS = """
CREATE TRIGGER outlast_calendar_append_only BEFORE UPDATE OR DELETE ON outlast_calendar
    FOR EACH ROW EXECUTE FUNCTION outlast_append_only('by_id');
CREATE TRIGGER outlast_calendar_no_truncate BEFORE TRUNCATE ON outlast_calendar
    FOR EACH STATEMENT EXECUTE FUNCTION outlast_append_only();
"""

UNDO = """
DROP TRIGGER outlast_calendar_no_truncate ON outlast_calendar;
DROP TRIGGER outlast_calendar_append_only ON outlast_calendar;
"""


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("outlast_flows", "0009_outside"),
    ]

    operations = [
        migrations.CreateModel(
            name="Calendar",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField(verbose_name="name")),
                ("version", models.IntegerField(verbose_name="version")),
                ("body", models.JSONField(verbose_name="body")),
                ("digest", models.TextField(verbose_name="digest")),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
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
            ],
            options={
                "verbose_name": "calendar",
                "verbose_name_plural": "calendars",
                "db_table": "outlast_calendar",
                "permissions": [("publish_calendar", "Can publish calendars")],
                "default_permissions": ("view",),
                "constraints": [models.UniqueConstraint(fields=["name", "version"], name="outlast_calendar_once")],
            },
        ),
        migrations.RunSQL(TRIGGERS, UNDO),
    ]
