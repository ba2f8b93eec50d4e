"""Requests about calls of tools: several behind one wait, each known by activity, digest and number."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("outlast_approvals", "0006_api"), ("outlast_flows", "0008_tools")]

    operations = [
        migrations.AddField("request", "tool", models.TextField("tool", blank=True, default="", db_default="")),
        migrations.AddField("request", "activity_seq", models.IntegerField(null=True)),
        migrations.AddField("request", "call", models.IntegerField(default=0, db_default=0)),
        migrations.AlterField("request", "wait_id", models.BigIntegerField(db_index=True)),
        migrations.RemoveConstraint("request", "outlast_approval_request_open_once"),
        migrations.AddConstraint(
            "request",
            models.UniqueConstraint(fields=["wait_id"], name="outlast_approval_request_of_wait", condition=Q(tool="")),
        ),
        migrations.AddConstraint(
            "request",
            models.UniqueConstraint(
                fields=["workflow", "node"], name="outlast_approval_request_open_once", condition=Q(status="pending", tool="")
            ),
        ),
        migrations.AddConstraint(
            "request",
            models.UniqueConstraint(
                fields=["workflow", "activity_seq", "digest", "call"],
                name="outlast_approval_request_call_once",
                condition=Q(("status__in", ["pending", "approved"])) & ~Q(tool=""),
            ),
        ),
        migrations.AddConstraint(
            "request",
            models.CheckConstraint(
                name="outlast_approval_request_call",
                condition=Q(tool="", activity_seq__isnull=True, call=0)
                | ~Q(tool="") & Q(activity_seq__isnull=False, call__gte=1),
            ),
        ),
        migrations.AddIndex(
            "request",
            models.Index(fields=["workflow", "activity_seq", "id"], name="outlast_approval_request_calls", condition=~Q(tool="")),
        ),
    ]
