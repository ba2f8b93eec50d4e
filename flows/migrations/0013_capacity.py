"""Dependencies, limits, slots, and keys of starts (docs/decisions/0006)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0012_schedules")]

    operations = []
