"""Children: fans and branches (docs/decisions/0006)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0013_capacity")]

    operations = []
