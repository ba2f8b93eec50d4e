"""Transition: the append-only log of arrows (A4). The database demands a row for every arrow and refuses to change one."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models


class Transition(models.Model):
    """One arrow. `seq` equals the workflow's `version` after it. Integrity is structural: the moving statement writes it."""

    pk = models.CompositePrimaryKey("workflow_id", "seq")
    workflow = models.ForeignKey(
        "outlast_flows.Workflow",
        on_delete=models.DO_NOTHING,
        related_name="transitions",
        db_constraint=False,
        db_index=False,
    )
    seq = models.IntegerField()
    from_status = models.TextField()
    to_status = models.TextField()
    from_node = models.TextField()
    to_node = models.TextField()
    outcome = models.TextField()
    epoch = models.IntegerField()
    trigger = models.TextField()
    trigger_ref = models.TextField()
    intent_version = models.IntegerField()
    policy_version = models.TextField()
    activity_seq = models.IntegerField(null=True)
    attempt = models.IntegerField(null=True)
    error_code = models.TextField(null=True)
    note = models.JSONField(null=True)
    at = models.DateTimeField()

    class Meta:
        db_table = "outlast_transition"
        default_permissions = ("view",)
        indexes = [BrinIndex(fields=["at"], name="outlast_transition_at", autosummarize=True)]

    def __str__(self) -> str:
        return f"{self.seq}: {self.from_status} → {self.to_status}"
