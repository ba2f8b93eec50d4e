"""Runs by their chain: those that continued as one another."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0017_ledgers")]

    operations = [
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(condition=models.Q(("chain__isnull", False)), fields=["chain"], name="outlast_workflow_chain"),
        ),
    ]
