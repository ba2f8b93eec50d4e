"""Runs by the ledgers that they draw on: whoever raises a budget finds the children that wait for it."""

import django.contrib.postgres.indexes
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0016_events")]

    operations = [
        migrations.AddIndex(
            model_name="workflow",
            index=django.contrib.postgres.indexes.GinIndex(
                condition=models.Q(("ledgers__isnull", False)), fields=["ledgers"], name="outlast_workflow_ledgers"
            ),
        ),
    ]
