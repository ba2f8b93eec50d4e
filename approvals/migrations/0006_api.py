"""Answers of the API that are kept under an idempotency key; and the indexes that the waiting times of a period are read by."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_approvals", "0005_ask"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="KeptAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.TextField()),
                ("asked", models.TextField()),
                ("status", models.IntegerField()),
                ("body", models.TextField()),
                ("at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "outlast_api_answer",
                "default_permissions": (),
                "indexes": [models.Index(fields=["at"], name="outlast_api_answer_old")],
                "constraints": [models.UniqueConstraint(fields=["user", "key"], name="outlast_api_answer_once")],
            },
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(fields=["asked_at"], name="outlast_approval_request_asked"),
        ),
        migrations.AddIndex(
            model_name="review",
            index=models.Index(fields=["at"], name="outlast_review_taken_at", condition=Q(refused="")),
        ),
    ]
