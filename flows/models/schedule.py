"""Schedule and Occurrence: what starts which flow, when, and each of its moments (M1)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.core.schedules.words import (
    Compute,
    Missed,
    Missing,
    OccurrenceOrigin,
    OccurrenceStatus,
    Overlap,
    Repeated,
    Timing,
)


def _choices(
    words: type[Timing | Repeated | Missing | Missed | Overlap | Compute | OccurrenceOrigin | OccurrenceStatus],
) -> list[tuple[str, str]]:
    return [(word.value, word.value.replace("_", " ").capitalize()) for word in words]


class Schedule(models.Model):
    """What starts which flow, when. `origin`: "code", declared in flows.py, or "record".

    `planned_until`: all moments until then have their occurrence. `next_at`: the next one; empty where there is none, or where it is computed
    from the end of the run that is open. `held_until`: until then it was paused. `overlapped`: so many were skipped in a row for a run
    that lived.
    `digest`: of what is declared in code.
    """

    name = models.TextField(_("name"), unique=True)
    origin = models.TextField(_("origin"), choices=[("code", _("code")), ("record", _("record"))])
    revision = models.IntegerField(_("revision"))
    flow_name = models.TextField(_("flow"))
    input = models.JSONField(_("input"))
    kind = models.TextField(_("kind"), choices=_choices(Timing))
    expression = models.TextField(_("when"))
    time_zone = models.TextField(_("time zone"))
    anchor = models.DateTimeField(_("counts from"), null=True)
    repeated = models.TextField(_("repeated local times"), blank=True, choices=_choices(Repeated))
    missing = models.TextField(_("missing local times"), blank=True, choices=_choices(Missing))
    missed = models.TextField(_("missed runs"), choices=_choices(Missed))
    window = models.DurationField(_("window for missed runs"), null=True)
    cap = models.IntegerField(_("missed runs a second"))
    overlap = models.TextField(_("overlap"), choices=_choices(Overlap))
    cooldown = models.DurationField(_("cooldown"), null=True)
    jitter = models.DurationField(_("jitter"), null=True)
    compute = models.TextField(_("computed at"), choices=_choices(Compute))
    calendar = models.TextField(_("calendar"), blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        verbose_name=_("accountable user"),
    )
    user_label = models.TextField(_("accountable user"), blank=True)
    priority = models.SmallIntegerField(_("priority"))
    tenant = models.TextField(_("tenant"), blank=True)
    paused_at = models.DateTimeField(_("paused since"), null=True)
    paused_by = models.TextField(_("changed by"), blank=True)
    reason = models.TextField(_("reason"), blank=True)
    held_until = models.DateTimeField(null=True)
    planned_until = models.DateTimeField(_("planned until"))
    next_at = models.DateTimeField(_("next"), null=True)
    last_at = models.DateTimeField(_("last start"), null=True)
    overlapped = models.IntegerField(default=0, db_default=0)
    digest = models.TextField(blank=True)
    updated_at = models.DateTimeField(_("changed"))

    class Meta:
        db_table = "outlast_schedule"
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        default_permissions = ("view",)
        permissions = [("manage_schedule", _("Can make, change, pause and run schedules"))]
        indexes = [
            models.Index(
                fields=["next_at"], name="outlast_schedule_due", condition=Q(next_at__isnull=False, paused_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return str(self.name)


class Occurrence(models.Model):
    """One moment of a schedule, also one that was passed over (`code` says why).

    `local`: wall time and offset, with the policy that made the moment where there was one. `due_at`: when it is started, with the jitter.
    `passed_to`: the row stands for all moments until then. `tries`: starts that could not be made.
    """

    schedule = models.ForeignKey(
        Schedule, on_delete=models.DO_NOTHING, related_name="occurrences", db_index=False, verbose_name=_("schedule")
    )
    scheduled_for = models.DateTimeField(_("scheduled for"))
    local = models.TextField(_("local time"))
    origin = models.TextField(_("origin"), choices=_choices(OccurrenceOrigin))
    status = models.TextField(_("status"), choices=_choices(OccurrenceStatus))
    code = models.TextField(_("code"), blank=True)
    due_at = models.DateTimeField(_("due"))
    tries = models.SmallIntegerField(_("tries"), default=0)
    passed_to = models.DateTimeField(_("stands for all until"), null=True)
    workflow = models.ForeignKey(
        "outlast_flows.Workflow",
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name=_("workflow"),
    )
    revision = models.IntegerField(_("revision of the schedule"))
    planned_at = models.DateTimeField(_("planned"))
    started_at = models.DateTimeField(_("started"), null=True)
    ended_at = models.DateTimeField(_("ended"), null=True)
    by_label = models.TextField(_("by"), blank=True)
    reason = models.TextField(_("reason"), blank=True)

    class Meta:
        db_table = "outlast_occurrence"
        verbose_name = _("occurrence")
        verbose_name_plural = _("occurrences")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["schedule", "scheduled_for"], name="outlast_occurrence_once"),
            models.UniqueConstraint(fields=["schedule"], condition=Q(status="queued"), name="outlast_occurrence_queued"),
            models.CheckConstraint(
                condition=Q(status__in=[word.value for word in OccurrenceStatus]), name="outlast_occurrence_status"
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["started", "done", "cancelled"]) | Q(workflow__isnull=False),
                name="outlast_occurrence_run",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="outlast_occurrence_due", condition=Q(status__in=["pending", "queued"])),
            models.Index(fields=["schedule"], name="outlast_occurrence_started", condition=Q(status="started")),
        ]

    def __str__(self) -> str:
        return f"{self.schedule} {self.local}"
