"""What is scarce: Dependency, Limit, Slot; and new runs that are let in later: Deferred, StartKey (R1, R2)."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.core.capacity import DependencyStatus

STATUSES = [
    (DependencyStatus.HEALTHY.value, _("Healthy")),
    (DependencyStatus.DOWN.value, _("Down")),
    (DependencyStatus.TRIAL.value, _("On trial")),
    (DependencyStatus.RECOVERING.value, _("Recovering")),
]


class Dependency(models.Model):
    """How something outside is; what is declared of it stands in code. A person's `rate` and `ceiling` are over the code's.

    `fails`, `failed_at`: capacity errors and when the first of them was. `delay`: the last pause, in seconds. `allowed`: runs a second that are
    let through now. `trial_workflow`, `trial_seq`: which attempt is let through to see. `version` moves with every change.
    """

    name = models.TextField(_("name"), primary_key=True)
    status = models.TextField(_("status"), choices=STATUSES, default=DependencyStatus.HEALTHY.value, db_default="healthy")
    since = models.DateTimeField(_("since"))
    version = models.IntegerField(default=1, db_default=1)
    fails = models.IntegerField(default=0, db_default=0)
    failed_at = models.DateTimeField(null=True)
    code = models.TextField(_("code"), blank=True, default="", db_default="")
    delay = models.FloatField(default=0, db_default=0)
    allowed = models.FloatField(_("allowed now"), default=0, db_default=0)
    ramped_at = models.DateTimeField(null=True)
    probe_at = models.DateTimeField(_("looked at again"), null=True)
    trial_workflow = models.UUIDField(null=True)
    trial_seq = models.IntegerField(null=True)
    rate = models.FloatField(_("rate"), null=True, blank=True)
    ceiling = models.IntegerField(_("ceiling"), null=True, blank=True)
    by_label = models.TextField(_("by"), blank=True, default="", db_default="")
    reason = models.TextField(_("reason"), blank=True, default="", db_default="")

    class Meta:
        db_table = "outlast_dependency"
        verbose_name = _("dependency")
        verbose_name_plural = _("dependencies")
        default_permissions = ("view",)
        permissions = [("operate_dependency", _("Can say that a dependency is down or back, and at what rate it is used"))]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=[status.value for status in DependencyStatus]), name="outlast_dependency_status"
            )
        ]
        indexes = [
            models.Index(
                fields=["name"],
                name="outlast_dependency_touched",
                condition=Q(status__in=[DependencyStatus.RECOVERING.value, DependencyStatus.TRIAL.value])
                | Q(probe_at__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.status}"


class Limit(models.Model):
    """What may run at once, or begin in a second, for one name and key. `label`: under which one waits for it, and it is shown.

    `size`: how many of its slots are given; `lasting`: each until the attempt (or the run) ends, else until the attempt has begun.
    `look_at`: for when somebody has already asked that its waiters are looked at.
    """

    name = models.TextField(_("name"))
    key = models.TextField(_("key"), blank=True)
    label = models.TextField(_("limit"), unique=True)
    size = models.IntegerField(_("at once"))
    lasting = models.BooleanField(default=True, db_default=True)
    rate = models.FloatField(_("a second"), null=True)
    burst = models.FloatField(null=True)
    tokens = models.FloatField(default=0, db_default=0)
    refilled_at = models.DateTimeField()
    look_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outlast_limit"
        verbose_name = _("limit")
        verbose_name_plural = _("limits")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["name", "key"], name="outlast_limit_once")]

    def __str__(self) -> str:
        return self.label


class Slot(models.Model):
    """One unit of a limit, a prepared row: free, reserved (no fence) or held. Of a live run it has no activity.

    `took`: seconds of its last use.
    """

    pk = models.CompositePrimaryKey("limit_id", "number")
    limit = models.ForeignKey(Limit, on_delete=models.DO_NOTHING, related_name="slots", db_constraint=False, db_index=False)
    number = models.IntegerField()
    workflow_id = models.UUIDField(null=True)
    activity_seq = models.IntegerField(null=True)
    fence = models.IntegerField(null=True)
    since = models.DateTimeField()
    took = models.FloatField(null=True)

    class Meta:
        db_table = "outlast_slot"
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["limit", "number"], name="outlast_slot_free", condition=Q(workflow_id__isnull=True)),
            models.Index(fields=["workflow_id"], name="outlast_slot_of", condition=Q(workflow_id__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.limit_id}/{self.number}"


class Deferred(models.Model):
    """A run that is not admitted yet: the limits that it needs a unit of, in the order in which it takes them."""

    workflow = models.OneToOneField(
        "outlast_flows.Workflow",
        primary_key=True,
        on_delete=models.DO_NOTHING,
        related_name="deferred",
        db_constraint=False,
    )
    limits = ArrayField(models.BigIntegerField())

    class Meta:
        db_table = "outlast_deferred"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return str(self.workflow_id)


class StartKey(models.Model):
    """Starts of one key: a start that is put off (`due_at`), or the newest run (`workflow_id`) and the older ones that it is still to end.

    `workflow_id` of one that is put off: the id that its run will have. `origin`: what else the start said.
    """

    pk = models.CompositePrimaryKey("flow", "key")
    flow = models.TextField()
    key = models.TextField()
    version = models.IntegerField(default=1, db_default=1)
    input = models.JSONField(null=True)
    origin = models.JSONField(null=True)
    first_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    calls = models.IntegerField(default=0, db_default=0)
    workflow_id = models.UUIDField(null=True)
    replaces = ArrayField(models.UUIDField(), default=list, db_default=[])

    class Meta:
        db_table = "outlast_start_key"
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["due_at"], name="outlast_start_key_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["flow"], name="outlast_start_key_replaces", condition=~Q(replaces=[])),
        ]

    def __str__(self) -> str:
        return f"{self.flow}: {self.key}"
