"""An outbox of its own pace: when a notice is due, and why it was not sent."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_flows", "0005_people"),
    ]

    operations = [
        migrations.AddField("notice", "due_at", models.DateTimeField(null=True, verbose_name="due")),
        migrations.AddField("notice", "why", models.TextField(blank=True, db_default="", default="", verbose_name="why")),
        migrations.AlterField("notice", "created_at", models.DateTimeField(verbose_name="noted")),
        migrations.AlterField("notice", "tries", models.IntegerField(default=0, verbose_name="tries")),
        migrations.AlterField("notice", "sent_at", models.DateTimeField(null=True, verbose_name="sent")),
        migrations.AlterField("notice", "gave_up_at", models.DateTimeField(null=True, verbose_name="given up")),
    ]
