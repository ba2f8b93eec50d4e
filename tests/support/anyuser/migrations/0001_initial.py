from __future__ import annotations

import uuid

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = [("auth", "0012_alter_user_first_name_max_length")]
    operations = [
        migrations.CreateModel(
            name="Account",
            fields=[
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                ("is_superuser", models.BooleanField(default=False)),
                ("key", models.UUIDField(primary_key=True, default=uuid.uuid4, serialize=False)),
                ("email", models.EmailField(max_length=254, unique=True)),
                ("is_active", models.BooleanField(default=True)),
                ("is_staff", models.BooleanField(default=False)),
                (
                    "groups",
                    models.ManyToManyField(blank=True, related_name="user_set", related_query_name="user", to="auth.group"),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(blank=True, related_name="user_set", related_query_name="user", to="auth.permission"),
                ),
            ],
        ),
    ]
