"""Activity and Attempt: the logical work of one visit of a node, and the physical tries at it (B1)."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from flows.models.guards import known


class Activity(models.Model):
    """One visit of an activity node (or of one step of a pipeline). The attempt that runs now stands on this row."""

    pk = models.CompositePrimaryKey("workflow_id", "seq")
    workflow = models.ForeignKey(
        "outlast_flows.Workflow",
        on_delete=models.DO_NOTHING,
        related_name="activities",
        db_constraint=False,
        db_index=False,
    )
    seq = models.IntegerField()
    node = models.TextField()
    step = models.TextField()
    visit = models.IntegerField()
    status = models.TextField()
    attempt = models.IntegerField(default=0)
    fence = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    lost = models.IntegerField(default=0)
    worker_id = models.UUIDField(null=True)
    worker_pid = models.IntegerField(null=True)
    timeout_s = models.FloatField()
    started_at = models.DateTimeField(null=True)
    timeout_at = models.DateTimeField(null=True)
    last_error = models.TextField(null=True)
    notes = models.JSONField(null=True)
    result = models.JSONField(null=True)
    opened_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outlast_activity"
        default_permissions = ("view",)
        constraints = [
            known("outlast_activity_status", "activity", "status"),
        ]

    def __str__(self) -> str:
        return f"{self.node} (visit {self.visit})"


class Attempt(models.Model):
    """One ended try, written once by whoever ended it. A late result is kept here as evidence; it moved nothing."""

    pk = models.CompositePrimaryKey("workflow_id", "activity_seq", "number")
    workflow = models.ForeignKey(
        "outlast_flows.Workflow",
        on_delete=models.DO_NOTHING,
        related_name="attempt_rows",
        db_constraint=False,
        db_index=False,
    )
    activity_seq = models.IntegerField()
    number = models.IntegerField()
    node = models.TextField()
    worker_id = models.UUIDField(null=True)
    worker_pid = models.IntegerField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField()
    outcome = models.TextField()
    error_code = models.TextField(null=True)
    error_class = models.TextField(null=True)
    external_operation_id = models.TextField(null=True)
    late_result = models.JSONField(null=True)

    class Meta:
        db_table = "outlast_attempt"
        default_permissions = ("view",)
        constraints = [
            known("outlast_attempt_outcome", "attempt", "outcome"),
        ]
        indexes = [BrinIndex(fields=["ended_at"], name="outlast_attempt_ended", autosummarize=True)]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.node}: {self.outcome}"
