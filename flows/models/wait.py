"""Wait and Timer: why a workflow is not computing, what wakes it, and the moments that must be looked at (C1, C3)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.core.protocol import CAPACITY, WaitStatus
from flows.models.guards import ended, known


class Wait(models.Model):
    """One reason for not computing. Evidence is recorded by arrivals; the claim's turn decides and closes it.

    `need`, `got`: of a wait for several events, how many it needs and how many have come. `event_id`: the row of the inbox that it took.
    `priority`: the workflow's at parking, of waits for capacity alone.
    """

    workflow = models.ForeignKey(
        "outlast_flows.Workflow", on_delete=models.DO_NOTHING, related_name="waits", db_constraint=False, db_index=False
    )
    node = models.TextField(_("node"))
    visit = models.IntegerField()
    kind = models.TextField(_("kind"))
    reason = models.TextField(_("reason"))
    event_type = models.TextField(_("event type"))
    key = models.TextField(_("key"))
    deadline_at = models.DateTimeField(_("deadline"), null=True)
    on_expiry = models.TextField()
    epoch = models.IntegerField()
    intent_version = models.IntegerField()
    policy_version = models.TextField()
    state_versions = models.JSONField(null=True)
    status = models.TextField(_("status"))
    evidence = models.JSONField(null=True)
    result = models.JSONField(null=True)
    need = models.IntegerField(default=0, db_default=0)
    got = models.IntegerField(default=0, db_default=0)
    event_id = models.BigIntegerField(null=True)
    priority = models.SmallIntegerField(default=0, db_default=0)
    due_since = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(_("since"))
    closed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outlast_wait"
        default_permissions = ("view",)
        constraints = [
            known("outlast_wait_status", "wait", "status"),
            known("outlast_wait_kind", "wait kind", "kind"),
            ended("outlast_wait_ended", WaitStatus.OPEN.value, "closed_at"),
            models.UniqueConstraint(
                fields=["workflow", "node"], name="outlast_wait_open_once", condition=Q(status=WaitStatus.OPEN.value)
            ),
        ]
        indexes = [
            models.Index(fields=["workflow", "node", "visit"], name="outlast_wait_of_workflow"),
            models.Index(
                fields=["event_type", "key"],
                name="outlast_wait_channel",
                condition=Q(closed_at__isnull=True) & ~Q(event_type=""),
            ),
            models.Index(
                fields=["event_type", "key", "id"],
                name="outlast_wait_was_channel",
                condition=Q(closed_at__isnull=False) & ~Q(event_type=""),
            ),
            models.Index(fields=["kind", "workflow"], name="outlast_wait_of_kind", condition=Q(status=WaitStatus.OPEN.value)),
            models.Index(
                fields=["key", "-priority", "deadline_at", "id"],
                name="outlast_wait_capacity",
                condition=Q(closed_at__isnull=True, kind__in=sorted(CAPACITY)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


class TimerStatus(models.TextChoices):
    PENDING = "pending"
    FIRED = "fired"
    HANDLED = "handled"
    STALE = "stale"


class Timer(models.Model):
    """One moment. Firing wakes; it authorises nothing. A timer of an older epoch fires as stale and is counted.

    Of a deadline: `name` (of the SLA, of what must be fresh, of the commitment) and `on_expiry`, its policy. `untold`: it has passed, and the
    event that says so is still to come. fired: it has passed; handled: what its policy says has been done.
    """

    workflow = models.ForeignKey(
        "outlast_flows.Workflow",
        on_delete=models.DO_NOTHING,
        related_name="timers",
        db_constraint=False,
        db_index=False,
    )
    wait_id = models.BigIntegerField(null=True)
    commitment_id = models.BigIntegerField(null=True)
    kind = models.TextField(_("kind"))
    name = models.TextField(_("name"), default="", db_default="")
    on_expiry = models.TextField(_("then"), default="", db_default="")
    due_at = models.DateTimeField(_("due"))
    epoch = models.IntegerField()
    intent_version = models.IntegerField()
    policy_version = models.TextField()
    status = models.TextField(_("status"), default=TimerStatus.PENDING)
    fired_at = models.DateTimeField(null=True)
    untold = models.BooleanField(default=False, db_default=False)

    class Meta:
        db_table = "outlast_timer"
        default_permissions = ("view",)
        constraints = [
            known("outlast_timer_status", "timer", "status"),
            known("outlast_timer_kind", "timer kind", "kind"),
            ended("outlast_timer_ended", TimerStatus.PENDING.value, "fired_at"),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="outlast_timer_due", condition=Q(status=TimerStatus.PENDING.value)),
            models.Index(fields=["workflow"], name="outlast_timer_of_workflow"),
            models.Index(fields=["id"], name="outlast_timer_untold", condition=Q(untold=True)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} at {self.due_at:%Y-%m-%d %H:%M:%S}"
