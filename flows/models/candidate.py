"""Candidate: the recorded artifact of one model decision (O1). A second call is another row and overwrites nothing."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Candidate(models.Model):
    """What one attempt of a Decision proposed, and under what: release, prompt and context by their hashes, and what it used.

    `digest`: of choice and value, what is approved and executed. `refused`: the code for which it was not accepted. Append-only. The value
    itself is the result of the activity; a model's reasoning is stored nowhere.
    """

    workflow = models.ForeignKey(
        "outlast_flows.Workflow", on_delete=models.DO_NOTHING, related_name="candidates", db_constraint=False, db_index=False
    )
    node = models.TextField(_("node"))
    activity_seq = models.IntegerField()
    attempt = models.IntegerField()
    revision = models.IntegerField(_("revision"))
    choice = models.TextField(_("choice"), blank=True)
    digest = models.TextField(_("digest"), blank=True)
    refused = models.TextField(_("refused"), blank=True)
    release = models.TextField(_("release"), blank=True)
    model = models.TextField(_("model"), blank=True)
    prompt_hash = models.TextField(_("prompt"), blank=True)
    context_hash = models.TextField(_("context"), blank=True)
    output_hash = models.TextField(_("output"), blank=True)
    usage = models.JSONField(_("usage"))
    evidence_digest = models.TextField(_("evidence"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_candidate"
        verbose_name = _("candidate")
        verbose_name_plural = _("candidates")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["workflow", "activity_seq", "attempt"], name="outlast_candidate_once")]

    def __str__(self) -> str:
        return f"{self.node} {self.revision}: {self.choice or self.refused}"
