"""What the lists of the admin find by an index: ended runs by status, open waits by kind."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0021_measures")]

    operations = [
        migrations.AddIndex(
            model_name="wait",
            index=models.Index(condition=models.Q(("status", "open")), fields=["kind", "workflow"], name="outlast_wait_of_kind"),
        ),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                condition=models.Q(("status__in", ["cancelled", "complete", "failed", "reconciling", "superseded"])),
                fields=["status", "id"],
                name="outlast_workflow_of_status",
            ),
        ),
    ]
