"""Children: fans, which count and join them, and branches, which their ends are told to (0009 has the trigger)."""

import django.db.models.deletion
import django.db.models.expressions
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_flows", "0014_schedules"),
    ]

    operations = [
        migrations.CreateModel(
            name="Fan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("node", models.TextField(verbose_name="node")),
                ("visit", models.IntegerField(verbose_name="visit")),
                ("wait_id", models.BigIntegerField()),
                ("kind", models.TextField(verbose_name="kind")),
                ("body", models.TextField(verbose_name="runs")),
                ("epoch", models.IntegerField()),
                ("total", models.IntegerField(verbose_name="items")),
                ("running", models.IntegerField(default=0, verbose_name="running")),
                ("succeeded", models.IntegerField(default=0, verbose_name="succeeded")),
                ("failed", models.IntegerField(default=0, verbose_name="failed")),
                ("cancelled", models.IntegerField(default=0, verbose_name="cancelled")),
                ("skipped", models.IntegerField(default=0, verbose_name="skipped")),
                ("need", models.IntegerField(verbose_name="must succeed")),
                ("tolerated", models.IntegerField(verbose_name="may fail")),
                ("concurrency", models.IntegerField(verbose_name="at once")),
                ("on_cancel", models.TextField(verbose_name="when its run ends")),
                ("on_lose", models.TextField()),
                ("awaited", models.BooleanField()),
                ("owing", models.BooleanField(db_default=False, default=False)),
                (
                    "status",
                    models.TextField(
                        choices=[("open", "Open"), ("joined", "Joined"), ("closed", "Closed")], verbose_name="status"
                    ),
                ),
                ("opened_at", models.DateTimeField(verbose_name="since")),
                ("closed_at", models.DateTimeField(null=True, verbose_name="closed")),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="fans",
                        to="outlast_flows.workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "group of children",
                "verbose_name_plural": "groups of children",
                "db_table": "outlast_fan",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Branch",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey("fan_id", "number", blank=True, editable=False, primary_key=True, serialize=False),
                ),
                ("number", models.IntegerField(verbose_name="number")),
                ("name", models.TextField(blank=True, verbose_name="name")),
                ("key", models.TextField(null=True, verbose_name="key")),
                ("input", models.JSONField(verbose_name="input")),
                ("status", models.TextField(verbose_name="status")),
                ("workflow_id", models.UUIDField(unique=True)),
                ("parent_id", models.UUIDField()),
                ("outcome", models.TextField(blank=True, db_default="", default="", verbose_name="outcome")),
                ("error_code", models.TextField(null=True, verbose_name="error")),
                ("result", models.JSONField(null=True, verbose_name="result")),
                ("started_at", models.DateTimeField(null=True, verbose_name="started")),
                ("ended_at", models.DateTimeField(null=True, verbose_name="ended")),
                ("counted_at", models.DateTimeField(null=True)),
                ("stop_at", models.DateTimeField(null=True)),
                ("stopped_at", models.DateTimeField(null=True)),
                (
                    "fan",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="branches",
                        to="outlast_flows.fan",
                    ),
                ),
            ],
            options={
                "verbose_name": "child",
                "verbose_name_plural": "children",
                "db_table": "outlast_branch",
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="fan",
            index=models.Index(
                condition=models.Q(
                    ("running__lt", models.F("concurrency")),
                    ("status", "open"),
                    (
                        "total__gt",
                        django.db.models.expressions.CombinedExpression(
                            django.db.models.expressions.CombinedExpression(
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        models.F("running"), "+", models.F("succeeded")
                                    ),
                                    "+",
                                    models.F("failed"),
                                ),
                                "+",
                                models.F("cancelled"),
                            ),
                            "+",
                            models.F("skipped"),
                        ),
                    ),
                ),
                fields=["workflow"],
                name="outlast_fan_hungry",
            ),
        ),
        migrations.AddConstraint(
            model_name="fan",
            constraint=models.UniqueConstraint(fields=("workflow", "node", "visit"), name="outlast_fan_once"),
        ),
        migrations.AddConstraint(
            model_name="fan",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["open", "joined", "closed"])), name="outlast_fan_status"
            ),
        ),
        migrations.AddIndex(
            model_name="branch",
            index=models.Index(
                condition=models.Q(("status", "planned")), fields=["fan", "number"], name="outlast_branch_planned"
            ),
        ),
        migrations.AddIndex(
            model_name="branch",
            index=models.Index(
                condition=models.Q(("counted_at__isnull", True), ("ended_at__isnull", False)),
                fields=["parent_id"],
                name="outlast_branch_uncounted",
            ),
        ),
        migrations.AddIndex(
            model_name="branch",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True), ("stop_at__isnull", False), ("stopped_at__isnull", True)),
                fields=["stop_at"],
                name="outlast_branch_to_stop",
            ),
        ),
        migrations.AddConstraint(
            model_name="branch",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["planned", "running", "succeeded", "failed", "cancelled", "skipped"])),
                name="outlast_branch_status",
            ),
        ),
    ]
