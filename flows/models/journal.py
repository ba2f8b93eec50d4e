"""JournalEntry: one unit of an agent turn (a call of a model or a tool, or another one of a library), with its recorded answer (O1, A5)."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.core.turns import OPEN, EntryKind, EntryStatus


class JournalEntry(models.Model):
    """What is on record is used again by later attempts of the visit; what began and left no answer is lost, and made anew as another entry.

    `request`: a tool's arguments, never a prompt. `answer`: without a model's reasoning. `operation_id`: of its effect.
    `guarded`: which of equal calls the next one is. `within`: the entry inside which it was made.
    """

    pk = models.CompositePrimaryKey("workflow_id", "activity_seq", "number")
    workflow = models.ForeignKey(
        "outlast_flows.Workflow", on_delete=models.DO_NOTHING, related_name="journal", db_constraint=False, db_index=False
    )
    activity_seq = models.IntegerField()
    number = models.IntegerField(_("number"))
    kind = models.TextField(_("kind"))
    name = models.TextField(_("name"))
    status = models.TextField(_("status"))
    attempt = models.IntegerField(_("attempt"))
    epoch = models.IntegerField()
    request_hash = models.TextField(blank=True)
    request = models.JSONField(_("arguments"), null=True)
    answer = models.JSONField(_("answer"), null=True)
    answer_hash = models.TextField(blank=True)
    answer_bytes = models.IntegerField(default=0)
    code = models.TextField(_("code"), blank=True)
    model = models.TextField(_("model"), blank=True)
    release = models.TextField(_("release"), blank=True)
    usage = models.JSONField(_("usage"), default=dict)
    operation_id = models.TextField(null=True)
    guarded = ArrayField(models.TextField(), default=list)
    within = models.IntegerField(default=0)
    began_at = models.DateTimeField(_("began"))
    ended_at = models.DateTimeField(_("ended"), null=True)

    class Meta:
        db_table = "outlast_journal"
        verbose_name = _("agent turn entry")
        verbose_name_plural = _("agent turn entries")
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(name="outlast_journal_kind", condition=Q(kind__in=[kind.value for kind in EntryKind])),
            models.CheckConstraint(
                name="outlast_journal_status",
                condition=Q(status__in=sorted(status.value for status in OPEN), ended_at__isnull=True)
                | Q(status__in=sorted(status.value for status in set(EntryStatus) - OPEN), ended_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.kind} {self.name}: {self.status}"
