"""Commitment: an open obligation to the outside world: a reservation, a window, a hold, a temporary capability (J1)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.models.guards import known

#: In the words of the ledger: what still stands between the workflow and its end.
LIVE = ("planned", "active", "breached", "releasing")


class Commitment(models.Model):
    """What a workflow owes to somebody outside, active while it sleeps. `operation` is the effect that began it.

    `releasable`: its node declares how it is released. `may_defer`: the workflow may complete with it;
    it is then `deferred`, and whoever it was handed to services it. `reason`: why it ended; until then, and where nobody gave one, the code of a
    reference or of terms that could not be read from the result.
    """

    workflow = models.ForeignKey(
        "outlast_flows.Workflow", on_delete=models.DO_NOTHING, related_name="commitments", db_constraint=False, db_index=False
    )
    operation = models.ForeignKey(
        "outlast_flows.Operation",
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="commitments",
        db_constraint=False,
        db_index=False,
    )
    activity_seq = models.IntegerField()
    node = models.TextField(_("node"))
    visit = models.IntegerField()
    name = models.TextField(_("name"))
    kind = models.TextField(_("kind"))
    reference = models.TextField(_("reference"), blank=True)
    terms = models.JSONField(_("terms"), null=True)
    status = models.TextField(_("status"))
    releasable = models.BooleanField(_("has a release"))
    may_defer = models.BooleanField(_("may be deferred"))
    deadline_at = models.DateTimeField(_("deadline"), null=True)
    breached_at = models.DateTimeField(_("breached"), null=True)
    told_at = models.DateTimeField(null=True)
    holder = models.TextField(_("held by"), blank=True)
    reason = models.TextField(_("reason"), blank=True)
    opened_at = models.DateTimeField(_("since"))
    closed_at = models.DateTimeField(_("closed"), null=True)
    closed_by = models.TextField(_("closed by"), blank=True)

    class Meta:
        db_table = "outlast_commitment"
        verbose_name = _("commitment")
        verbose_name_plural = _("commitments")
        default_permissions = ("view",)
        permissions = [("service_commitment", _("Can say that a commitment is fulfilled, transferred or deferred"))]
        constraints = [
            known("outlast_commitment_status", "commitment", "status"),
            models.UniqueConstraint(fields=["workflow", "node", "visit", "name"], name="outlast_commitment_once"),
        ]
        indexes = [
            models.Index(fields=["kind", "opened_at"], name="outlast_commitment_live", condition=Q(status__in=LIVE)),
            models.Index(
                fields=["breached_at"],
                name="outlast_commitment_untold",
                condition=Q(breached_at__isnull=False, told_at__isnull=True),
            ),
            models.Index(fields=["workflow"], name="outlast_commitment_of"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.reference or self.name}: {self.status}"
