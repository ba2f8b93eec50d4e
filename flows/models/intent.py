"""Intent: the versioned goal that work is done for (D1)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from flows.core.ids import new_id
from flows.core.protocol import IntentStatus


class Intent(models.Model):
    """What somebody wants. Everything delayed is bound to one version of it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    goal = models.TextField(_("goal"), blank=True)
    version = models.IntegerField(_("version"), default=1)
    status = models.TextField(_("status"), default=IntentStatus.ACTIVE, choices=[(s.value, s.value) for s in IntentStatus])
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("accountable user"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    user_label = models.TextField(blank=True)
    created_at = models.DateTimeField(_("created"))
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        db_table = "outlast_intent"
        verbose_name = _("intent")
        verbose_name_plural = _("intents")
        constraints = [
            models.CheckConstraint(name="outlast_intent_status", condition=models.Q(status__in=[s.value for s in IntentStatus])),
            models.CheckConstraint(name="outlast_intent_version", condition=models.Q(version__gte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.goal or self.id} (version {self.version})"


class IntentRevision(models.Model):
    """A version of an intent that is over: what it was, what replaced it, who said so and why."""

    intent = models.ForeignKey(Intent, on_delete=models.CASCADE, related_name="revisions")
    version = models.IntegerField()
    goal = models.TextField(blank=True)
    ended_as = models.TextField()
    reason = models.TextField(blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    by_label = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        db_table = "outlast_intent_revision"
        constraints = [models.UniqueConstraint(fields=["intent", "version"], name="outlast_intent_revision_once")]

    def __str__(self) -> str:
        return f"{self.intent_id} version {self.version}: {self.ended_as}"
