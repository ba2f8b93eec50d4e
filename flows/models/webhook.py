"""WebhookSource, WebhookDelivery, WebhookRefusal: what is sent in over HTTP, and what became of it (E4)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class WebhookVerdict(models.TextChoices):
    """accepted: it is in the inbox. ignored: its mapping says that it concerns nobody. unmapped: nothing could be made of it, and it is kept as
    it came. conflict: a known id with another body.
    """

    ACCEPTED = "accepted"
    IGNORED = "ignored"
    UNMAPPED = "unmapped"
    CONFLICT = "conflict"


class WebhookSource(models.Model):
    """Who may send, how it is signed, and what it means. `secrets` holds references, never a secret. A source of the setting wins."""

    name = models.TextField(_("name"), unique=True)
    scheme = models.TextField(_("scheme"))
    options = models.JSONField(_("options"), default=dict)
    secrets = ArrayField(models.TextField(), verbose_name=_("secrets"))
    event_type = models.TextField(_("event type"))
    event_key = models.TextField(_("event key"))
    payload = models.TextField(_("payload"), blank=True, default="")
    enabled = models.BooleanField(_("enabled"), default=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False, verbose_name=_("by")
    )
    by_label = models.TextField(_("by"), blank=True)
    reason = models.TextField(_("reason"))
    version = models.IntegerField(_("version"), default=1)
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        db_table = "outlast_webhook_source"
        verbose_name = _("webhook source")
        verbose_name_plural = _("webhook sources")
        default_permissions = ("view",)
        permissions = [("manage_webhooks", _("Can manage webhook sources and map deliveries anew"))]

    def __str__(self) -> str:
        return str(self.name)


class WebhookDelivery(models.Model):
    """One verified request.

    `body` is kept while it led to no event. `unsigned_id`: nobody signed its id, so its body is known under any. `secret` is the number of the
    one that held. `times` counts the same request, `conflicts` other bodies under its id; each of those is a row of its own.
    """

    source = models.TextField(_("source"))
    delivery_id = models.TextField(_("delivery id"))
    body_digest = models.TextField(_("digest of the body"))
    unsigned_id = models.BooleanField()
    body = models.BinaryField(_("body"), null=True)
    headers = models.JSONField(_("headers"))
    verdict = models.TextField(_("verdict"), choices=WebhookVerdict.choices)
    code = models.TextField(_("why"), blank=True)
    event_id = models.TextField(_("event id"), blank=True)
    events = models.IntegerField(_("events"), default=0)
    times = models.IntegerField(_("times"), default=1)
    conflicts = models.IntegerField(_("conflicts"), default=0)
    secret = models.SmallIntegerField(_("secret"))
    sent_at = models.DateTimeField(_("sent"), null=True)
    received_at = models.DateTimeField(_("received"))
    seen_at = models.DateTimeField(_("last seen"))
    mapped_by = models.TextField(_("mapped anew by"), blank=True)
    reason = models.TextField(_("reason"), blank=True)

    class Meta:
        db_table = "outlast_webhook_delivery"
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["source", "delivery_id"], name="outlast_webhook_once"),
            models.UniqueConstraint(
                fields=["source", "body_digest"], name="outlast_webhook_body_once", condition=Q(unsigned_id=True)
            ),
            models.CheckConstraint(name="outlast_webhook_verdict", condition=Q(verdict__in=WebhookVerdict.values)),
        ]
        indexes = [
            models.Index(
                fields=["id"],
                name="outlast_webhook_open",
                condition=Q(verdict__in=[WebhookVerdict.UNMAPPED.value, WebhookVerdict.CONFLICT.value]),
            ),
            models.Index(fields=["event_id"], name="outlast_webhook_event", condition=~Q(event_id="")),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.delivery_id}"


class WebhookRefusal(models.Model):
    """How many requests were refused, by source, hour and reason; no row for each, for strangers may send as many as they like."""

    source = models.TextField(_("source"), blank=True)
    hour = models.DateTimeField(_("hour"))
    code = models.TextField(_("why"))
    count = models.BigIntegerField(_("requests"))

    class Meta:
        db_table = "outlast_webhook_refusal"
        verbose_name = _("refused webhooks")
        verbose_name_plural = _("refused webhooks")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["source", "hour", "code"], name="outlast_webhook_refusal_once")]

    def __str__(self) -> str:
        return f"{self.source or '?'}: {self.count} {self.code}"
