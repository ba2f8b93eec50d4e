"""Measures: where the time of runs went, hour by hour, as the roll-up computed it from the log (Q1, Q2). They outlive the runs."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Measure(models.Model):
    """The time that all runs of a flow and version spent in one bucket in one hour, and how many runs that were.

    Written by the roll-up alone, an hour as a whole; it is final an hour after its end.
    """

    pk = models.CompositePrimaryKey("hour", "flow", "version", "bucket")
    hour = models.DateTimeField()
    flow = models.TextField()
    version = models.IntegerField()
    bucket = models.TextField()
    seconds = models.DecimalField(max_digits=20, decimal_places=6)
    runs = models.IntegerField()

    class Meta:
        db_table = "outlast_measure"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H} {self.flow}@{self.version} {self.bucket}: {self.seconds} s"


class Latency(models.Model):
    """One column of a histogram: how many of what happened in one hour to runs of a flow and version took at most `le` seconds, and more than
    the column before it. `seconds`: how long they took together. What there is: docs/reference/metrics.md.
    """

    pk = models.CompositePrimaryKey("hour", "flow", "version", "what", "le")
    hour = models.DateTimeField()
    flow = models.TextField()
    version = models.IntegerField()
    what = models.TextField()
    le = models.FloatField()
    count = models.IntegerField()
    seconds = models.DecimalField(max_digits=20, decimal_places=6)

    class Meta:
        db_table = "outlast_latency"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H} {self.flow}@{self.version} {self.what} ≤ {self.le}: {self.count}"


class MeasuredNode(models.Model):
    """What running at a node counts as, where it is not computing: recorded, so that whoever measures says the same of every flow."""

    pk = models.CompositePrimaryKey("flow", "version", "node")
    flow = models.TextField()
    version = models.IntegerField()
    node = models.TextField()
    bucket = models.TextField()

    class Meta:
        db_table = "outlast_measured_node"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.flow}@{self.version} {self.node}: {self.bucket}"


class RollUp(models.Model):
    """One row: hours before `until` are measured, hours before `final` for the last time. `looked_at`: when somebody last set about it."""

    id = models.SmallIntegerField(primary_key=True)
    looked_at = models.DateTimeField()
    until = models.DateTimeField()
    final = models.DateTimeField()

    class Meta:
        db_table = "outlast_rollup"
        default_permissions = ()
        constraints = [models.CheckConstraint(name="outlast_rollup_one", condition=Q(id=1))]

    def __str__(self) -> str:
        return f"measured until {self.until}"
