"""Schedules, their occurrences, and calendars (docs/decisions/0006)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0011_webhooks")]

    operations = []
