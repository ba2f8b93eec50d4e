"""Webhooks: sources, deliveries, refusals (docs/decisions/0006)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0010_events")]

    operations = []
