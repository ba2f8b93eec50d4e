"""Webhooks that come in: who may send, what was sent, and how much was refused."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_flows", "0011_journal"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("source", models.TextField(verbose_name="source")),
                ("delivery_id", models.TextField(verbose_name="delivery id")),
                ("body_digest", models.TextField(verbose_name="digest of the body")),
                ("unsigned_id", models.BooleanField()),
                ("body", models.BinaryField(null=True, verbose_name="body")),
                ("headers", models.JSONField(verbose_name="headers")),
                (
                    "verdict",
                    models.TextField(
                        choices=[
                            ("accepted", "Accepted"),
                            ("ignored", "Ignored"),
                            ("unmapped", "Unmapped"),
                            ("conflict", "Conflict"),
                        ],
                        verbose_name="verdict",
                    ),
                ),
                ("code", models.TextField(blank=True, verbose_name="why")),
                ("event_id", models.TextField(blank=True, verbose_name="event id")),
                ("events", models.IntegerField(default=0, verbose_name="events")),
                ("times", models.IntegerField(default=1, verbose_name="times")),
                ("conflicts", models.IntegerField(default=0, verbose_name="conflicts")),
                ("secret", models.SmallIntegerField(verbose_name="secret")),
                ("sent_at", models.DateTimeField(null=True, verbose_name="sent")),
                ("received_at", models.DateTimeField(verbose_name="received")),
                ("seen_at", models.DateTimeField(verbose_name="last seen")),
                ("mapped_by", models.TextField(blank=True, verbose_name="mapped anew by")),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
            ],
            options={
                "verbose_name": "webhook delivery",
                "verbose_name_plural": "webhook deliveries",
                "db_table": "outlast_webhook_delivery",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("verdict__in", ["unmapped", "conflict"])), fields=["id"], name="outlast_webhook_open"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("source", "delivery_id"), name="outlast_webhook_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("unsigned_id", True)),
                        fields=("source", "body_digest"),
                        name="outlast_webhook_body_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("verdict__in", ["accepted", "ignored", "unmapped", "conflict"])),
                        name="outlast_webhook_verdict",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookRefusal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("source", models.TextField(blank=True, verbose_name="source")),
                ("hour", models.DateTimeField(verbose_name="hour")),
                ("code", models.TextField(verbose_name="why")),
                ("count", models.BigIntegerField(verbose_name="requests")),
            ],
            options={
                "verbose_name": "refused webhooks",
                "verbose_name_plural": "refused webhooks",
                "db_table": "outlast_webhook_refusal",
                "default_permissions": ("view",),
                "constraints": [models.UniqueConstraint(fields=("source", "hour", "code"), name="outlast_webhook_refusal_once")],
            },
        ),
        migrations.CreateModel(
            name="WebhookSource",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField(unique=True, verbose_name="name")),
                ("scheme", models.TextField(verbose_name="scheme")),
                ("options", models.JSONField(default=dict, verbose_name="options")),
                (
                    "secrets",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None, verbose_name="secrets"),
                ),
                ("event_type", models.TextField(verbose_name="event type")),
                ("event_key", models.TextField(verbose_name="event key")),
                ("payload", models.TextField(blank=True, default="", verbose_name="payload")),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("reason", models.TextField(verbose_name="reason")),
                ("version", models.IntegerField(default=1, verbose_name="version")),
                ("updated_at", models.DateTimeField(verbose_name="updated")),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook source",
                "verbose_name_plural": "webhook sources",
                "db_table": "outlast_webhook_source",
                "permissions": [("manage_webhooks", "Can manage webhook sources and map deliveries anew")],
                "default_permissions": ("view",),
            },
        ),
    ]
