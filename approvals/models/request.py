"""Request: one question to a role about one exact candidate, bound to everything that must still hold when it is answered (F1)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from approvals.core.status import ANSWERS, STATUS_AFTER, RequestStatus

PENDING = Q(status=RequestStatus.PENDING.value)

LABELS = {
    RequestStatus.PENDING: pgettext_lazy("approval request", "pending"),
    RequestStatus.APPROVED: pgettext_lazy("approval request", "approved"),
    RequestStatus.DENIED: pgettext_lazy("approval request", "denied"),
    RequestStatus.CHANGES_REQUESTED: pgettext_lazy("approval request", "changes requested"),
    RequestStatus.CONSUMED: pgettext_lazy("approval request", "approved and used"),
    RequestStatus.EXPIRED: pgettext_lazy("approval request", "expired"),
    RequestStatus.WITHDRAWN: pgettext_lazy("approval request", "withdrawn"),
    RequestStatus.INVALIDATED: pgettext_lazy("approval request", "no longer valid"),
}


def _answer_matches() -> Q:
    """Which answer a status may carry; one that was never answered carries none."""
    unanswered = Q(answer="", answered_at__isnull=True)
    matches = Q(status__in=[RequestStatus.PENDING.value, RequestStatus.WITHDRAWN.value]) & unanswered
    for answer, status in STATUS_AFTER.items():
        matches |= Q(status=status.value, answer=answer, answered_at__isnull=False)
    approved = Q(answer="approved", answered_at__isnull=False)
    matches |= Q(status=RequestStatus.CONSUMED.value) & approved
    matches |= Q(status__in=[RequestStatus.EXPIRED.value, RequestStatus.INVALIDATED.value]) & (unanswered | approved)
    return matches


class Request(models.Model):
    """Written once when the workflow parks; then only `status`, the answer and the use move, by the statements in `approvals.store`.

    The foreign keys to workflow and intent have no constraint in the database: checking one would lock the intent after the
    workflow, against the lock order.
    """

    workflow = models.ForeignKey(
        "outlast_flows.Workflow",
        verbose_name=_("workflow"),
        on_delete=models.DO_NOTHING,
        related_name="approval_requests",
        db_constraint=False,
        db_index=False,
    )
    wait_id = models.BigIntegerField(unique=True)
    node = models.TextField(_("node"))
    visit = models.IntegerField()
    role = models.TextField(_("role"))
    answers = ArrayField(models.TextField())
    self_approval = models.BooleanField(_("may be answered by the accountable user"))

    candidate_node = models.TextField(_("candidate of"))
    candidate = models.JSONField(_("candidate"))
    evidence = models.JSONField(_("evidence"), null=True)
    digest = models.TextField(_("digest"))
    revision = models.IntegerField(_("revision"))

    intent = models.ForeignKey(
        "outlast_flows.Intent",
        verbose_name=_("intent"),
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    intent_version = models.IntegerField(_("intent version"))
    epoch = models.IntegerField()
    policy_version = models.TextField(_("policy version"), blank=True)
    state_versions = models.JSONField(null=True)
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("accountable user"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    requester_label = models.TextField(blank=True)

    asked_at = models.DateTimeField(_("asked"))
    expires_at = models.DateTimeField(_("expires"), null=True)
    on_expiry = models.TextField(blank=True)

    status = models.TextField(_("status"), choices=[(status.value, label) for status, label in LABELS.items()])
    answer = models.TextField(_("answer"), blank=True)
    answered_at = models.DateTimeField(_("answered"), null=True)
    used_by = models.IntegerField(null=True)
    used_at = models.DateTimeField(_("used"), null=True)

    class Meta:
        db_table = "outlast_approval_request"
        verbose_name = _("approval request")
        verbose_name_plural = _("approval requests")
        default_permissions = ("view",)
        permissions = [("answer_request", _("Can answer approval requests"))]
        constraints = [
            models.CheckConstraint(
                name="outlast_approval_request_status", condition=Q(status__in=[s.value for s in RequestStatus])
            ),
            models.CheckConstraint(
                name="outlast_approval_request_answers",
                condition=Q(answers__contained_by=sorted(ANSWERS.values()), answers__len__gte=1),
            ),
            models.CheckConstraint(name="outlast_approval_request_answer", condition=_answer_matches()),
            models.CheckConstraint(
                name="outlast_approval_request_use",
                condition=Q(status=RequestStatus.CONSUMED.value, used_by__isnull=False, used_at__isnull=False)
                | ~Q(status=RequestStatus.CONSUMED.value) & Q(used_by__isnull=True, used_at__isnull=True),
            ),
            models.UniqueConstraint(fields=["workflow", "node"], name="outlast_approval_request_open_once", condition=PENDING),
        ]
        indexes = [
            models.Index(fields=["role", "expires_at"], name="outlast_approval_request_inbox", condition=PENDING),
            models.Index(fields=["workflow", "node", "id"], name="outlast_approval_request_of"),
        ]

    def __str__(self) -> str:
        return f"{self.node}, revision {self.revision} (request {self.pk})"
