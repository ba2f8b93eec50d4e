"""Event: the inbox of evidence from outside, each with a stable id (E1)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class EventStatus(models.TextChoices):
    """pending: nobody waited yet. held: an earlier one of its stream is missing. consumed: a wait took it. conflict: the id came again with
    another payload; never consumed. aside: for a run that has ended, or for nobody.
    """

    PENDING = "pending"
    HELD = "held"
    CONSUMED = "consumed"
    CONFLICT = "conflict"
    ASIDE = "aside"


class Event(models.Model):
    """What somebody outside said. It is kept whether or not anybody waits, and consumed once.

    `place` says what it is, beside `status`. `about_…`: what its sender said it is about. `position`: in its stream, which waits for an earlier
    one until `held_until`. `redelivered` counts; `copy_of` is the conflict that a person had delivered after all.
    """

    event_id = models.TextField(_("event id"))
    type = models.TextField(_("type"))
    key = models.TextField(_("key"))
    payload = models.JSONField(_("payload"))
    payload_hash = models.TextField()
    status = models.TextField(_("status"), choices=EventStatus.choices)
    deliveries = models.IntegerField(_("deliveries"), default=1)
    wait_id = models.BigIntegerField(null=True)
    workflow_id = models.UUIDField(null=True)
    place = models.TextField(_("place"), blank=True, default="", db_default="")
    about_workflow = models.UUIDField(null=True)
    about_epoch = models.IntegerField(null=True)
    about_intent = models.IntegerField(null=True)
    about_wait = models.BigIntegerField(null=True)
    position = models.BigIntegerField(_("position"), null=True)
    held_until = models.DateTimeField(_("held until"), null=True)
    redelivered = models.IntegerField(_("redelivered"), default=0, db_default=0)
    copy_of = models.BigIntegerField(null=True)
    observed_at = models.DateTimeField(_("observed"))

    class Meta:
        db_table = "outlast_event"
        default_permissions = ("view",)
        permissions = [("redeliver_event", _("Can have an event delivered again"))]
        constraints = [
            models.CheckConstraint(name="outlast_event_status", condition=Q(status__in=EventStatus.values)),
            models.UniqueConstraint(
                fields=["event_id"], name="outlast_event_once", condition=~Q(status=EventStatus.CONFLICT.value)
            ),
            models.UniqueConstraint(
                fields=["event_id", "payload_hash"],
                name="outlast_event_conflict_once",
                condition=Q(status=EventStatus.CONFLICT.value),
            ),
        ]
        indexes = [
            models.Index(fields=["type", "key"], name="outlast_event_early", condition=Q(status=EventStatus.PENDING.value)),
            models.Index(
                fields=["type", "key"],
                name="outlast_event_late",
                condition=Q(status=EventStatus.ASIDE.value, place__in=["ended", "superseded"]),
            ),
            models.Index(
                fields=["observed_at"],
                name="outlast_event_unclaimed",
                condition=Q(status=EventStatus.PENDING.value, place__in=["early", "between", "unknown", "gap"]),
            ),
            models.Index(fields=["held_until"], name="outlast_event_held", condition=Q(status=EventStatus.HELD.value)),
            models.Index(
                fields=["type", "key", "position"], name="outlast_event_stream", condition=Q(status=EventStatus.HELD.value)
            ),
            models.Index(
                fields=["place", "-id"],
                name="outlast_event_place",
                condition=~Q(place="") & ~Q(place__in=["taken", "started"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.key} ({self.event_id})"


class Stream(models.Model):
    """The newest position that was passed on, of an ordered (type, key)."""

    pk = models.CompositePrimaryKey("type", "key")
    type = models.TextField()
    key = models.TextField()
    position = models.BigIntegerField()

    class Meta:
        db_table = "outlast_stream"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.type} {self.key}: {self.position}"


class Redelivery(models.Model):
    """Somebody had an event delivered again: what it was, and why. Append-only.

    `event` is the row as it was asked for; of a conflict, `copy` is the row that was delivered in its place. `wait_id`: to one wait alone.
    """

    event = models.ForeignKey(Event, on_delete=models.DO_NOTHING, related_name="redeliveries", db_constraint=False)
    copy_id = models.BigIntegerField(null=True)
    status = models.TextField(_("status before"))
    place = models.TextField(_("place before"), blank=True)
    wait_id = models.BigIntegerField(null=True)
    woken = models.IntegerField(_("woken"))
    reason = models.TextField(_("reason"))
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    by_label = models.TextField(_("by"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_redelivery"
        verbose_name = _("redelivery")
        verbose_name_plural = _("redeliveries")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.status} {self.place}, delivered again"
