"""What is owed to people: rows written by the arrow that they tell of, sent later, by one sender (`flows.services.outbox`)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

#: What the sender still has to look at.
OWED = Q(sent_at__isnull=True, gave_up_at__isnull=True)


class Owed(models.Model):
    """A row of an outbox.

    `due_at`: not before then (empty: at once); while a sender has it, nobody else takes it up until then. `gave_up_at`: it is not sent and never
    will be; `why` says the reason of that, or what went wrong at the last try.
    """

    created_at = models.DateTimeField(_("noted"))
    due_at = models.DateTimeField(_("due"), null=True)
    tries = models.IntegerField(_("tries"), default=0)
    sent_at = models.DateTimeField(_("sent"), null=True)
    gave_up_at = models.DateTimeField(_("given up"), null=True)
    why = models.TextField(_("why"), blank=True, default="", db_default="")

    class Meta:
        abstract = True


class Notice(Owed):
    """Owed to the accountable user when a workflow ends badly or needs a person (B4); it carries the safe code only."""

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

    class Meta:
        db_table = "outlast_notice"
        default_permissions = ("view",)
        indexes = [models.Index(fields=["created_at"], name="outlast_notice_owed", condition=OWED)]

    def __str__(self) -> str:
        return f"{self.outcome} {self.code}"
