"""Finding and Scan: what the liveness scan has found, and how it went (P1, P2)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.core.liveness import FindingStatus

LABELS = {
    FindingStatus.OPEN: _("open"),
    FindingStatus.REPAIRED: _("repaired"),
    FindingStatus.GONE: _("gone"),
    FindingStatus.DISMISSED: _("dismissed"),
}


class Finding(models.Model):
    """That something was found.

    `subject`: `workflow:ID`, `operation:ID`, `event:ID` and so on; `facts`: what the scan saw. `times`: in how many scans. `before`: how many
    closed findings there were of the same kind and subject. `tries`: repairs that hit nothing. `code`: of the repair that has mended it.
    `closed_at` empty: it is there, so no second one is. A dismissed finding is closed when it goes.
    """

    kind = models.TextField(_("kind"))
    subject = models.TextField(_("subject"))
    workflow_id = models.UUIDField(_("workflow"), null=True)
    facts = models.JSONField(_("facts"))
    status = models.TextField(_("status"), choices=[(status.value, label) for status, label in LABELS.items()], default="open")
    first_seen = models.DateTimeField(_("first seen"))
    last_seen = models.DateTimeField(_("last seen"))
    times = models.IntegerField(_("times seen"), default=1)
    before = models.IntegerField(_("findings before"), default=0)
    tries = models.IntegerField(_("repairs tried"), default=0)
    code = models.TextField(_("repair"), blank=True, default="")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    by_label = models.TextField(_("by"), blank=True, default="")
    reason = models.TextField(_("reason"), blank=True, default="")
    closed_at = models.DateTimeField(_("closed"), null=True)

    class Meta:
        db_table = "outlast_finding"
        verbose_name = _("orphan")
        verbose_name_plural = _("orphans")
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(
                name="outlast_finding_status", condition=Q(status__in=[status.value for status in FindingStatus])
            ),
            models.CheckConstraint(
                name="outlast_finding_closed",
                condition=Q(status="open", closed_at__isnull=True)
                | Q(status__in=["repaired", "gone"], closed_at__isnull=False)
                | Q(status="dismissed"),
            ),
            models.UniqueConstraint(fields=["kind", "subject"], name="outlast_finding_once", condition=Q(closed_at__isnull=True)),
        ]
        indexes = [
            models.Index(fields=["kind", "subject"], name="outlast_finding_before"),
            models.Index(fields=["workflow_id"], name="outlast_finding_of", condition=Q(workflow_id__isnull=False)),
            models.Index(fields=["status", "-last_seen"], name="outlast_finding_seen"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class Scan(models.Model):
    """The newest scan of a kind; of the kind "": of all. `problem`: why it could not be looked for; `whole`: it was, and all was found."""

    kind = models.TextField(primary_key=True)
    scanned_at = models.DateTimeField()
    seconds = models.FloatField(default=0)
    found = models.IntegerField(default=0)
    whole = models.BooleanField(default=True)
    problem = models.TextField(blank=True, default="")

    class Meta:
        db_table = "outlast_scan"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.scanned_at}"
