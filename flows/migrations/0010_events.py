"""The inbox, complete: events of which a wait needs several, ordered streams (docs/decisions/0006)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0009_outside")]

    operations = []
