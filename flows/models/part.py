"""Part: one of the events that a wait needs, and the event that filled it (E2)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Part(models.Model):
    """One of the events that a wait needs; open until an event fills it, or its wait is closed (a trigger of the wait's table sees to that)."""

    wait_id = models.BigIntegerField()
    workflow_id = models.UUIDField()
    number = models.IntegerField()
    name = models.TextField(_("name"))
    event_type = models.TextField(_("event type"))
    key = models.TextField(_("key"))
    event_id = models.BigIntegerField(null=True)
    evidence = models.JSONField(_("evidence"), null=True)
    open = models.BooleanField(_("open"))

    class Meta:
        db_table = "outlast_wait_part"
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["wait_id", "number"], name="outlast_wait_part_once")]
        indexes = [
            models.Index(fields=["event_type", "key"], name="outlast_wait_part_channel", condition=Q(open=True)),
            models.Index(fields=["event_type", "key", "wait_id"], name="outlast_wait_part_was", condition=Q(open=False)),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.event_type} {self.key}"
