"""Verdict, Observation, Verification: what the gate answered, what it looked at, and what verifiers found (H1, H2, H4). Append-only."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.utils.translation import gettext_lazy as _

from flows.models.guards import known


class Verdict(models.Model):
    """One answer of a node's gate.

    `version`: of the workflow, when it was asked. `cause`: of the wake-up. `checks`: [name, answer, digest of what it looked at] of each, in
    order; the answer is `holds`, `refused`, or `unchanged` (it held for the same facts before, and was not run again).
    """

    workflow = models.ForeignKey(
        "outlast_flows.Workflow", on_delete=models.DO_NOTHING, related_name="verdicts", db_constraint=False, db_index=False
    )
    version = models.IntegerField()
    epoch = models.IntegerField()
    intent_version = models.IntegerField()
    node = models.TextField(_("node"))
    activity_seq = models.IntegerField(null=True)
    attempt = models.IntegerField(null=True)
    cause = models.TextField(_("woken by"))
    verdict = models.TextField(_("verdict"))
    reason = models.TextField(_("reason"), blank=True)
    checks = models.JSONField(_("checks"))
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_verdict"
        verbose_name = _("verdict")
        verbose_name_plural = _("verdicts")
        default_permissions = ("view",)
        constraints = [
            known("outlast_verdict_verdict", "verdict", "verdict"),
            known("outlast_verdict_cause", "wake cause", "cause"),
        ]
        indexes = [
            models.Index(fields=["workflow", "id"], name="outlast_verdict_of"),
            BrinIndex(fields=["at"], name="outlast_verdict_at", autosummarize=True),
        ]

    def __str__(self) -> str:
        return f"{self.node}: {self.verdict}"


class Observation(models.Model):
    """What a probe saw: the version of something outside. `baseline`: what was decided or checked by that attempt stands on it."""

    workflow = models.ForeignKey(
        "outlast_flows.Workflow", on_delete=models.DO_NOTHING, related_name="observations", db_constraint=False, db_index=False
    )
    node = models.TextField(_("node"))
    activity_seq = models.IntegerField()
    attempt = models.IntegerField()
    name = models.TextField(_("name"))
    version = models.TextField(_("version"))
    baseline = models.BooleanField(_("baseline"))
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_observation"
        verbose_name = _("observation")
        verbose_name_plural = _("observations")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["workflow", "name", "id"], name="outlast_observation_of")]

    def __str__(self) -> str:
        return f"{self.name} at {self.version}"


class Verification(models.Model):
    """A verifier's recorded result, bound to what it looked at. A candidate with another digest is not verified by it."""

    workflow = models.ForeignKey(
        "outlast_flows.Workflow", on_delete=models.DO_NOTHING, related_name="verifications", db_constraint=False, db_index=False
    )
    node = models.TextField(_("verifier"))
    activity_seq = models.IntegerField()
    attempt = models.IntegerField()
    candidate_node = models.TextField(_("candidate of"))
    digest = models.TextField(_("digest of the candidate"))
    revision = models.IntegerField(_("revision"))
    state_versions = models.JSONField(_("state versions"))
    passed = models.BooleanField(_("passed"))
    code = models.TextField(blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_verification"
        verbose_name = _("verification")
        verbose_name_plural = _("verifications")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["workflow", "node", "id"], name="outlast_verification_of")]

    def __str__(self) -> str:
        return f"{self.node}: {'passed' if self.passed else 'failed'}"
