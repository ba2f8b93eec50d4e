"""The overview stands in the admin's index beside the models; it has no table."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0025_bulk")]

    operations = [
        migrations.CreateModel(
            name="Overview",
            fields=[],
            options={
                "verbose_name": "overview",
                "verbose_name_plural": "overview",
                "proxy": True,
                "default_permissions": (),
                "indexes": [],
                "constraints": [],
            },
            bases=("outlast_flows.workflow",),
        ),
    ]
