"""Notice: a message owed to the accountable user when a workflow ends badly or needs a person (B4)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class Notice(models.Model):
    """An outbox row, written by the arrow itself; it carries the safe code only."""

    workflow = models.ForeignKey(
        "outlast_flows.Workflow",
        on_delete=models.DO_NOTHING,
        related_name="notices",
        db_constraint=False,
        db_index=False,
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    outcome = models.TextField()
    code = models.TextField()
    created_at = models.DateTimeField()
    tries = models.IntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    gave_up_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outlast_notice"
        default_permissions = ("view",)
        indexes = [
            models.Index(
                fields=["created_at"],
                name="outlast_notice_owed",
                condition=Q(sent_at__isnull=True, gave_up_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} {self.code}"
