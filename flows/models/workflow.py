"""Workflow: one durable run of a flow, and the sessions it belongs to (A1, A2)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.core.protocol import LIVE, TERMINAL, Status
from flows.models.guards import state


class Workflow(models.Model):
    """The durable identity of one run. It is moved only by the arrows in `flows.store`; never assign to its status.

    `version` counts arrows, `epoch` generations; together with `intent_version` they fence every late writer.
    `active_seq` is the activity that is scheduled or running. `rank` orders the claim: ready time minus priority.
    `passed_over` is the current release beside which a person let the workflow keep its own; `alerted_at` is when its accountable user was
    told that no worker offers its release (it counts as long as it is younger than `updated_at`).
    `ledgers` are the workflows on whose budgets it draws, its own last (NULL: its own alone); `depth` counts its ancestors. `chain` is the first
    run of those that continue as new, `continued_to` the next one. `slots` are those that it holds until it ends. `started_by` says what began
    an isolated run: `schedule:NAME`, `event:ID`, `child`.
    `owed` counts what stands between the workflow and its end (docs/decisions/0003); `target` is the end that it is on the way to meanwhile.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    flow_name = models.TextField(_("flow"))
    flow_version = models.IntegerField(_("definition version"))
    fingerprint = models.TextField()
    key = models.TextField(_("key"), null=True)
    input = models.JSONField(_("input"))
    input_digest = models.TextField()
    subject = models.TextField(_("subject"), blank=True)

    intent = models.ForeignKey(
        "outlast_flows.Intent",
        on_delete=models.PROTECT,
        related_name="workflows",
        db_constraint=False,
        db_index=False,
    )
    intent_version = models.IntegerField(_("intent version"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("accountable user"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    user_label = models.TextField(blank=True)
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="children", db_index=False)
    depth = models.SmallIntegerField(default=0, db_default=0)
    ledgers = ArrayField(models.UUIDField(), null=True)
    chain = models.UUIDField(null=True)
    continued_to = models.UUIDField(null=True)
    slots = models.SmallIntegerField(default=0, db_default=0)
    tenant = models.TextField(_("tenant"), blank=True, default="", db_default="")
    started_by = models.TextField(_("started by"), blank=True, default="", db_default="")

    node = models.TextField(_("node"))
    status = models.TextField(_("status"), choices=[(s.value, s.value) for s in Status])
    outcome = models.TextField(_("outcome"), blank=True)
    error_code = models.TextField(_("last error"), null=True)
    result = models.JSONField(_("result"), null=True)
    checkpoint = models.JSONField(_("checkpoint"), null=True)

    version = models.IntegerField()
    epoch = models.IntegerField(default=0)
    wake_seq = models.IntegerField(default=0)
    activity_seq = models.IntegerField(default=0)
    active_seq = models.IntegerField(null=True)
    attempts = models.IntegerField(_("attempts"), default=0)
    owed = models.IntegerField(_("owed"), default=0, db_default=0)
    target = models.TextField(_("on the way to"), blank=True, default="", db_default="")
    release = models.TextField(_("release"), blank=True)
    passed_over = models.TextField(_("release passed over"), null=True)
    alerted_at = models.DateTimeField(null=True)
    policy_version = models.TextField(_("policy version"), blank=True)

    queue = models.TextField(_("queue"))
    placement = models.TextField(_("placement"), blank=True)
    priority = models.SmallIntegerField(_("priority"), default=0)
    rank = models.DateTimeField()
    due_at = models.DateTimeField(_("due"), null=True)
    deadline_at = models.DateTimeField(_("deadline"), null=True)
    worker_id = models.UUIDField(null=True)
    worker_pid = models.IntegerField(null=True)
    pause_requested_at = models.DateTimeField(null=True)

    created_at = models.DateTimeField(_("started"))
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        db_table = "outlast_workflow"
        verbose_name = _("workflow")
        verbose_name_plural = _("workflows")
        default_permissions = ("view",)
        permissions = [
            ("operate_workflow", _("Can cancel, pause and resume workflows")),
            ("erase_workflow", _("Can erase what ended workflows were given, made and were told")),
            ("see_redacted", _("Can see redacted values")),
        ]
        constraints = [
            state("outlast_workflow_state"),
            models.UniqueConstraint(fields=["flow_name", "key"], name="outlast_workflow_key", condition=Q(key__isnull=False)),
        ]
        indexes = [
            models.Index(fields=["queue", "rank"], name="outlast_workflow_ready", condition=Q(status=Status.RUNNABLE.value)),
            # Not `status = 'running'`: every hot arrow says that, and would read this index with its dead entries of every claim.
            models.Index(fields=["worker_id"], name="outlast_workflow_owned", condition=Q(worker_id__isnull=False)),
            models.Index(fields=["intent"], name="outlast_workflow_intent"),
            # Who deletes a run asks for its children, and so does the database.
            models.Index(fields=["parent"], name="outlast_workflow_parent", condition=Q(parent__isnull=False)),
            # Not by `updated_at`: each arrow would then write every index of the row. Retention goes through it in this order.
            models.Index(
                fields=["created_at", "id"],
                name="outlast_workflow_ended",
                condition=Q(status__in=sorted(status.value for status in TERMINAL)),
            ),
            models.Index(fields=["chain"], name="outlast_workflow_chain", condition=Q(chain__isnull=False)),
            GinIndex(fields=["ledgers"], name="outlast_workflow_ledgers", condition=Q(ledgers__isnull=False)),
            models.Index(fields=["user"], name="outlast_workflow_user", condition=Q(user__isnull=False)),
            models.Index(
                fields=["status", "created_at"],
                name="outlast_workflow_live",
                condition=Q(status__in=[Status.WAITING.value, Status.PAUSED.value, Status.CANCELLING.value]),
            ),
            # Entered once, at the end of a run (and by a reconciling one): the hot arrows pay nothing for it.
            models.Index(
                fields=["status", "id"],
                name="outlast_workflow_of_status",
                condition=Q(status__in=sorted(status.value for status in TERMINAL | {Status.RECONCILING})),
            ),
            models.Index(
                fields=["release"],
                name="outlast_workflow_pinned",
                condition=Q(release__gt="") & Q(status__in=sorted(status.value for status in LIVE)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.flow_name} {self.key or self.id}"


class SessionLink(models.Model):
    """Which chat sessions (or other UI conversations) a workflow belongs to: many to many, never its identity."""

    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="sessions")
    session = models.TextField(_("session"))
    linked_at = models.DateTimeField()

    class Meta:
        db_table = "outlast_session_link"
        constraints = [models.UniqueConstraint(fields=["session", "workflow"], name="outlast_session_link_once")]

    def __str__(self) -> str:
        return f"{self.session} – {self.workflow_id}"
