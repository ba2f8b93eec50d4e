"""Fan and Branch: the children of one visit of a node, and the counters that join them (G4)."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from flows.core.joins import CANCELLED, ENDED, FAILED, PLANNED, RUNNING, SKIPPED, SUCCEEDED


class FanStatus(models.TextChoices):
    """open: branches are started and counted. joined: its wait has its evidence. closed: nobody waits for it any more."""

    OPEN = "open", _("Open")
    JOINED = "joined", _("Joined")
    CLOSED = "closed", _("Closed")


class Fan(models.Model):
    """The children of one visit of a Map, Parallel or Child. `running`, `succeeded` and the others count its branches; the rest are planned.

    `kind`: map, parallel or child; `body`: what its branches run. `epoch`: the workflow's generation that it belongs to. It is met with `need`
    that succeeded, and has failed with more than `tolerated` that did not. `awaited`: a wait stands for it. `owing`: its workflow is on its way
    to an end and waits for those that run.
    """

    workflow = models.ForeignKey(
        "outlast_flows.Workflow", on_delete=models.DO_NOTHING, related_name="fans", db_constraint=False, db_index=False
    )
    node = models.TextField(_("node"))
    visit = models.IntegerField(_("visit"))
    wait_id = models.BigIntegerField()
    kind = models.TextField(_("kind"))
    body = models.TextField(_("runs"))
    epoch = models.IntegerField()
    total = models.IntegerField(_("items"))
    running = models.IntegerField(_("running"), default=0)
    succeeded = models.IntegerField(_("succeeded"), default=0)
    failed = models.IntegerField(_("failed"), default=0)
    cancelled = models.IntegerField(_("cancelled"), default=0)
    skipped = models.IntegerField(_("skipped"), default=0)
    need = models.IntegerField(_("must succeed"))
    tolerated = models.IntegerField(_("may fail"))
    concurrency = models.IntegerField(_("at once"))
    on_cancel = models.TextField(_("when its run ends"))
    on_lose = models.TextField()
    awaited = models.BooleanField()
    owing = models.BooleanField(default=False, db_default=False)
    status = models.TextField(_("status"), choices=FanStatus.choices)
    opened_at = models.DateTimeField(_("since"))
    closed_at = models.DateTimeField(_("closed"), null=True)

    class Meta:
        db_table = "outlast_fan"
        verbose_name = _("group of children")
        verbose_name_plural = _("groups of children")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["workflow", "node", "visit"], name="outlast_fan_once"),
            models.CheckConstraint(name="outlast_fan_status", condition=Q(status__in=FanStatus.values)),
        ]
        indexes = [
            models.Index(fields=["workflow"], name="outlast_fan_open", condition=Q(status=FanStatus.OPEN.value)),
            # Those that have room for one more, and one more to start.
            models.Index(
                fields=["workflow"],
                name="outlast_fan_hungry",
                condition=Q(
                    status=FanStatus.OPEN.value,
                    running__lt=F("concurrency"),
                    total__gt=F("running") + F("succeeded") + F("failed") + F("cancelled") + F("skipped"),
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node}: {self.total} × {self.body}"


class Branch(models.Model):
    """One item or branch, and the run that does it, whose id is known before it is started.

    `ended_at`, `outcome`, `error_code` and `result` are written by the end of that run, whoever ends it; `counted_at` by whoever counts it.
    `stop_at`: it is to be cancelled; `stopped_at`: it was asked to end.
    """

    pk = models.CompositePrimaryKey("fan_id", "number")
    fan = models.ForeignKey(Fan, on_delete=models.DO_NOTHING, related_name="branches", db_constraint=False, db_index=False)
    number = models.IntegerField(_("number"))
    name = models.TextField(_("name"), blank=True)
    key = models.TextField(_("key"), null=True)
    input = models.JSONField(_("input"))
    status = models.TextField(_("status"))
    workflow_id = models.UUIDField(unique=True)
    parent_id = models.UUIDField()
    outcome = models.TextField(_("outcome"), blank=True, default="", db_default="")
    error_code = models.TextField(_("error"), null=True)
    result = models.JSONField(_("result"), null=True)
    started_at = models.DateTimeField(_("started"), null=True)
    ended_at = models.DateTimeField(_("ended"), null=True)
    counted_at = models.DateTimeField(null=True)
    stop_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outlast_branch"
        verbose_name = _("child")
        verbose_name_plural = _("children")
        default_permissions = ()
        constraints = [
            models.CheckConstraint(name="outlast_branch_status", condition=Q(status__in=[PLANNED, RUNNING, *ENDED])),
        ]
        indexes = [
            models.Index(fields=["fan", "number"], name="outlast_branch_planned", condition=Q(status=PLANNED)),
            models.Index(
                fields=["parent_id"],
                name="outlast_branch_uncounted",
                condition=Q(ended_at__isnull=False, counted_at__isnull=True),
            ),
            models.Index(
                fields=["stop_at"],
                name="outlast_branch_to_stop",
                condition=Q(stop_at__isnull=False, stopped_at__isnull=True, ended_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.name or str(self.number)


#: The counters of a fan, as its branches' statuses are called.
COUNTED = (SUCCEEDED, FAILED, CANCELLED, SKIPPED)
