"""Calendar: when something is open, as a versioned record (C7)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Calendar(models.Model):
    """One version of a named calendar. Append-only: a calendar changes by its next version, and the newest counts."""

    name = models.TextField(_("name"))
    version = models.IntegerField(_("version"))
    body = models.JSONField(_("body"))
    digest = models.TextField(_("digest"))
    reason = models.TextField(_("reason"), blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    by_label = models.TextField(_("by"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_calendar"
        verbose_name = _("calendar")
        verbose_name_plural = _("calendars")
        default_permissions = ("view",)
        permissions = [("publish_calendar", _("Can publish calendars"))]
        constraints = [models.UniqueConstraint(fields=["name", "version"], name="outlast_calendar_once")]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"
