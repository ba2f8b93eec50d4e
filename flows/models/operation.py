"""Operation and Resolution: one call to the outside world, and every answer to the question what became of it (B2, B5, B7)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.core.effects import OperationKind, OperationStatus
from flows.models.guards import known


class Operation(models.Model):
    """One call, known by an id that is the same over all attempts. In flight is committed before the call; unknown is a status of its own.

    `due_at`: when a servicing turn must look at it; None if nobody need, or only a person can. `looks` counts and fences the looks, `tries`
    those since the last change of status that had an answer, `lost` those that went down with their worker. `of` is the operation that a
    compensation mitigates. `flown_by`, `flown_pid`: who makes the call, until that is known to be over. `again`: it may have happened, and only
    asking for the same again can tell (`Effect(idempotent=True)` alone).
    """

    id = models.TextField(primary_key=True)
    workflow = models.ForeignKey(
        "outlast_flows.Workflow", on_delete=models.DO_NOTHING, related_name="operations", db_constraint=False, db_index=False
    )
    activity_seq = models.IntegerField()
    node = models.TextField(_("node"))
    name = models.TextField(_("name"), blank=True)
    kind = models.TextField(_("kind"))
    of = models.ForeignKey(
        "self", null=True, on_delete=models.DO_NOTHING, related_name="mitigations", db_constraint=False, db_index=False
    )
    commitment = models.ForeignKey(
        "outlast_flows.Commitment",
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="operations",
        db_constraint=False,
        db_index=False,
    )
    status = models.TextField(_("status"))
    request = models.JSONField(_("request"), null=True)
    request_digest = models.TextField(_("digest of the request"), blank=True)
    attempt = models.IntegerField()
    epoch = models.IntegerField()
    intent_version = models.IntegerField()
    compensable = models.BooleanField(default=False)
    two_people = models.BooleanField(default=False)
    again = models.BooleanField(default=False)
    external_id = models.TextField(_("the provider's id"), blank=True)
    evidence = models.JSONField(_("evidence"), null=True)
    error_code = models.TextField(null=True)
    flown_by = models.UUIDField(null=True)
    flown_pid = models.IntegerField(null=True)
    flown_at = models.DateTimeField(_("in flight since"), null=True)
    doubt_since = models.DateTimeField(_("in doubt since"), null=True)
    settled_at = models.DateTimeField(null=True)
    settled_by = models.TextField(_("settled by"), blank=True)
    looks = models.IntegerField(default=0)
    tries = models.IntegerField(default=0)
    lost = models.IntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    worker_id = models.UUIDField(null=True)
    worker_pid = models.IntegerField(null=True)
    timeout_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outlast_operation"
        verbose_name = _("operation")
        verbose_name_plural = _("operations")
        default_permissions = ("view",)
        permissions = [("resolve_operation", _("Can say what became of an uncertain effect"))]
        constraints = [
            known("outlast_operation_status", "operation", "status"),
            known("outlast_operation_kind", "operation kind", "kind"),
        ]
        indexes = [
            models.Index(fields=["workflow", "activity_seq"], name="outlast_operation_of"),
            models.Index(
                fields=["due_at"], name="outlast_operation_due", condition=Q(due_at__isnull=False, worker_id__isnull=True)
            ),
            models.Index(fields=["worker_id"], name="outlast_operation_owned", condition=Q(worker_id__isnull=False)),
            models.Index(
                fields=["doubt_since"], name="outlast_operation_doubt", condition=Q(status=OperationStatus.UNCERTAIN.value)
            ),
            # A compensation or a release whose call failed as often as it may: beside the doubts, what a person is needed for.
            models.Index(
                fields=["flown_at"],
                name="outlast_operation_stuck",
                condition=Q(
                    status=OperationStatus.FAILED.value,
                    kind__in=[OperationKind.COMPENSATION.value, OperationKind.RELEASE.value],
                    due_at__isnull=True,
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id}: {self.status}"


class Resolution(models.Model):
    """One answer to the question what became of an operation: by its own attempt (too late), a probe, or a person. Append-only.

    `counted`: it settled the operation. One that did not is evidence: somebody else was first, or a second person must agree.
    """

    operation = models.ForeignKey(Operation, on_delete=models.DO_NOTHING, related_name="resolutions", db_constraint=False)
    source = models.TextField(_("source"))
    answer = models.TextField(_("answer"))
    external_id = models.TextField(_("the provider's id"), blank=True)
    evidence = models.JSONField(_("evidence"), null=True)
    reason = models.TextField(_("reason"), blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    by_label = models.TextField(_("by"), blank=True)
    counted = models.BooleanField(_("counted"))
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_resolution"
        verbose_name = _("resolution")
        verbose_name_plural = _("resolutions")
        default_permissions = ("view",)
        constraints = [
            known("outlast_resolution_answer", "resolution", "answer"),
            known("outlast_resolution_source", "resolution source", "source"),
        ]

    def __str__(self) -> str:
        return f"{self.answer} ({self.source})"
