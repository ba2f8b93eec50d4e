"""KeptAnswer: what the API answered to a request that named an idempotency key, so that the same request again gets the same answer."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class KeptAnswer(models.Model):
    """One key of one user. `asked`: the digest of what was asked with it. Written in the transaction of what it answers; kept for a day."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.TextField()
    asked = models.TextField()
    status = models.IntegerField()
    body = models.TextField()
    at = models.DateTimeField()

    class Meta:
        db_table = "outlast_api_answer"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="outlast_api_answer_once")]
        indexes = [models.Index(fields=["at"], name="outlast_api_answer_old")]

    def __str__(self) -> str:
        return f"{self.key}: {self.status}"
