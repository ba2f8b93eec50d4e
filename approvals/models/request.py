"""Request: one question to people about one exact candidate, bound to everything that must still hold when it is answered (F1)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from approvals.core.status import AFTER_APPROVED, ANSWER, ANSWERS, OF_ASKS, STATUS_AFTER, VERDICTS, RequestKind, RequestStatus
from approvals.models.wording import asked_in_words

_NEVER_ANSWERED = (RequestStatus.PENDING, RequestStatus.CANCELLED, RequestStatus.EXPIRED, RequestStatus.INVALIDATED)

PENDING = Q(status=RequestStatus.PENDING.value)

LABELS = {
    RequestStatus.PENDING: pgettext_lazy("approval request", "pending"),
    RequestStatus.ANSWERED: pgettext_lazy("approval request", "answered"),
    RequestStatus.APPROVED: pgettext_lazy("approval request", "approved"),
    RequestStatus.DENIED: pgettext_lazy("approval request", "denied"),
    RequestStatus.CHANGES_REQUESTED: pgettext_lazy("approval request", "changes requested"),
    RequestStatus.CONSUMED: pgettext_lazy("approval request", "approved and used"),
    RequestStatus.EXPIRED: pgettext_lazy("approval request", "expired"),
    RequestStatus.CANCELLED: pgettext_lazy("approval request", "withdrawn"),
    RequestStatus.SUPERSEDED: pgettext_lazy("approval request", "changes requested, asked anew"),
    RequestStatus.REVOKED: pgettext_lazy("approval request", "approval taken back"),
    RequestStatus.INVALIDATED: pgettext_lazy("approval request", "no longer valid"),
}


def _answer_matches() -> Q:
    """Which answer a status may carry; one that was never answered carries none."""
    unanswered = Q(answer="", answered_at__isnull=True)
    matches = Q(status__in=[status.value for status in _NEVER_ANSWERED]) & unanswered
    for answer, status in STATUS_AFTER.items():
        if status is not RequestStatus.APPROVED:
            matches |= Q(status=status.value, answer=answer, answered_at__isnull=False)
    matches |= Q(status=RequestStatus.SUPERSEDED.value, answer="changes", answered_at__isnull=False)
    return matches | Q(status__in=sorted(status.value for status in AFTER_APPROVED), answer="approved", answered_at__isnull=False)


def _kind_matches() -> Q:
    """An approval has answers that approve or refuse; a form has one, and is never approved."""
    approval = Q(answers__contained_by=sorted(ANSWERS.values()), answers__len__gte=1) & ~Q(status=RequestStatus.ANSWERED.value)
    asked = Q(answers=[VERDICTS[ANSWER]], status__in=sorted(status.value for status in OF_ASKS))
    return Q(kind=RequestKind.APPROVAL.value) & approval | Q(kind=RequestKind.ASK.value) & asked


class Request(models.Model):
    """Written once when the workflow parks; then only what is listed last moves, by the statements in `approvals.store`.

    `kind`: an approval, or what a form asks for; then the form, and why it is asked, stand where the candidate stands (`candidate["value"]`).
    `steps`: the ladder as it applied, each step with `name`, `need` and `audience`; `escalation`: who may answer too, and after how many
    seconds; `ladder`: the digest of both as declared. `step`, `given`, `escalated`: the step that is asked now, how many have approved in it,
    how many of the escalation have come. `audiences`: who may answer now, as keys (`approvals.core.seats`), of which one must hold.
    `tool`: the tool that asks, in the activity `activity_seq`; "": an approval node does. `call`: which of several equal calls of it.
    `claimed_*`: who says that they are looking at it; that locks nobody out.

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
    kind = models.TextField(
        _("kind"), choices=[(RequestKind.APPROVAL.value, _("approval")), (RequestKind.ASK.value, _("question"))]
    )
    wait_id = models.BigIntegerField(db_index=True)
    node = models.TextField(_("node"))
    visit = models.IntegerField()
    steps = models.JSONField(_("steps"))
    escalation = models.JSONField(_("escalation"), default=list)
    ladder = models.TextField()
    subset = models.TextField(_("reviewers may keep a part of"), blank=True)
    bulk = models.BooleanField(_("may be approved in bulk"), default=False)
    answers = ArrayField(models.TextField())
    self_approval = models.BooleanField(_("may be answered by the accountable user"))

    tool = models.TextField(_("tool"), blank=True, default="", db_default="")
    activity_seq = models.IntegerField(null=True)
    call = models.IntegerField(default=0, db_default=0)
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

    step = models.IntegerField(default=0)
    given = models.IntegerField(default=0)
    escalated = models.IntegerField(default=0)
    audiences = ArrayField(models.TextField())
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("looked at by"), null=True, on_delete=models.SET_NULL, related_name="+"
    )
    claimed_label = models.TextField(blank=True)
    claimed_at = models.DateTimeField(null=True)
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
        permissions = [
            ("answer_request", _("Can answer approval requests")),
            ("assign_request", _("Can say who looks at an approval request")),
            ("revoke_request", _("Can take back approvals that are not used")),
        ]
        constraints = [
            models.CheckConstraint(
                name="outlast_approval_request_status", condition=Q(status__in=[s.value for s in RequestStatus])
            ),
            models.CheckConstraint(name="outlast_approval_request_kind", condition=_kind_matches()),
            models.CheckConstraint(name="outlast_approval_request_answer", condition=_answer_matches()),
            models.CheckConstraint(
                name="outlast_approval_request_use",
                condition=Q(status=RequestStatus.CONSUMED.value, used_by__isnull=False, used_at__isnull=False)
                | ~Q(status=RequestStatus.CONSUMED.value) & Q(used_by__isnull=True, used_at__isnull=True),
            ),
            models.CheckConstraint(
                name="outlast_approval_request_call",
                condition=Q(tool="", activity_seq__isnull=True, call=0)
                | ~Q(tool="") & Q(activity_seq__isnull=False, call__gte=1),
            ),
            models.UniqueConstraint(fields=["wait_id"], name="outlast_approval_request_of_wait", condition=Q(tool="")),
            models.UniqueConstraint(
                fields=["workflow", "node"],
                name="outlast_approval_request_open_once",
                condition=Q(status=RequestStatus.PENDING.value, tool=""),
            ),
            models.UniqueConstraint(
                fields=["workflow", "activity_seq", "digest", "call"],
                name="outlast_approval_request_call_once",
                condition=Q(status__in=[RequestStatus.PENDING.value, RequestStatus.APPROVED.value]) & ~Q(tool=""),
            ),
        ]
        indexes = [
            models.Index(fields=["expires_at", "id"], name="outlast_approval_request_inbox", condition=PENDING),
            models.Index(fields=["workflow", "node", "id"], name="outlast_approval_request_of"),
            models.Index(fields=["asked_at"], name="outlast_approval_request_asked"),
            models.Index(fields=["workflow", "activity_seq", "id"], name="outlast_approval_request_calls", condition=~Q(tool="")),
        ]

    def __str__(self) -> str:
        if self.tool:
            return gettext("%(tool)s at %(node)s (request %(request)s)") % {
                "tool": self.tool,
                "node": self.node,
                "request": self.pk,
            }
        told = {"node": self.node, "revision": self.revision, "request": self.pk}
        return gettext("%(node)s, revision %(revision)s (request %(request)s)") % told

    @property
    def asked(self) -> str:
        """Who may answer now, in words."""
        return asked_in_words(self.steps, self.step, self.audiences)
