"""Measures (docs/decisions/0008, Q): hours of the log as buckets and histograms, and the indexes by which an hour is found."""

import django.contrib.postgres.indexes
from django.db import migrations, models

#: Where there is a log already, its last week is measured, too.
BEGIN = """
INSERT INTO outlast_rollup (id, looked_at, until, final)
SELECT 1, statement_timestamp(), b.first, b.first FROM (
    SELECT date_trunc('hour', flows_now(), 'UTC')
        - CASE WHEN EXISTS (SELECT FROM outlast_transition) THEN interval '168 hours' ELSE interval '0' END AS first) b
ON CONFLICT (id) DO NOTHING
"""


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_flows", "0020_holds"),
    ]

    operations = [
        migrations.CreateModel(
            name="Latency",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "hour", "flow", "version", "what", "le", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("flow", models.TextField()),
                ("version", models.IntegerField()),
                ("what", models.TextField()),
                ("le", models.FloatField()),
                ("count", models.IntegerField()),
                ("seconds", models.DecimalField(decimal_places=6, max_digits=20)),
            ],
            options={
                "db_table": "outlast_latency",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Measure",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "hour", "flow", "version", "bucket", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("flow", models.TextField()),
                ("version", models.IntegerField()),
                ("bucket", models.TextField()),
                ("seconds", models.DecimalField(decimal_places=6, max_digits=20)),
                ("runs", models.IntegerField()),
            ],
            options={
                "db_table": "outlast_measure",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="MeasuredNode",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "flow", "version", "node", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("flow", models.TextField()),
                ("version", models.IntegerField()),
                ("node", models.TextField()),
                ("bucket", models.TextField()),
            ],
            options={
                "db_table": "outlast_measured_node",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="RollUp",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("looked_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("final", models.DateTimeField()),
            ],
            options={
                "db_table": "outlast_rollup",
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["ended_at"], name="outlast_attempt_ended"
            ),
        ),
        migrations.AddIndex(
            model_name="transition",
            index=django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=["at"], name="outlast_transition_at"),
        ),
        migrations.AddIndex(
            model_name="verdict",
            index=django.contrib.postgres.indexes.BrinIndex(autosummarize=True, fields=["at"], name="outlast_verdict_at"),
        ),
        migrations.AddConstraint(
            model_name="rollup",
            constraint=models.CheckConstraint(condition=models.Q(("id", 1)), name="outlast_rollup_one"),
        ),
        migrations.RunSQL(BEGIN, migrations.RunSQL.noop),
    ]
