"""Who erases a run finds the children of it that are archived, and the deliveries of its events by an index."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0026_overview")]

    operations = [
        migrations.AddField(model_name="archived", name="parent_id", field=models.UUIDField(null=True)),
        migrations.AddIndex(
            model_name="archived",
            index=models.Index(
                fields=["parent_id"], name="outlast_archive_parent", condition=models.Q(("parent_id__isnull", False))
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                fields=["event_id"], name="outlast_webhook_event", condition=models.Q(("event_id", ""), _negated=True)
            ),
        ),
    ]
