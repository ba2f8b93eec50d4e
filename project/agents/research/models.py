"""What a question has come to: claims, the evidence that they stand on, and what was asked for and has not come. Of `run` each row is.

    Evidence    asked about ──► refused          by a person: this version is never read
                     └────────► read             its text stays as it was read, under its digest; a newer version is a row of its own
    Claim       unknown ──► supported, contradicted, contested … and again, when its basis has become another one
    EvidenceRequest   open ──► answered          when a version of the source was read, or refused

One writer: the activities of the run itself. The runs that judge single claims only read. What an attempt that lost its worker writes late is
either there already (evidence never changes) or older than what stands there (a claim's `visit` only grows).
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q


class Evidence(models.Model):
    """One version of one source, as it was read, or refused."""

    run = models.UUIDField()
    source = models.CharField(max_length=200)
    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=80)
    publisher = models.CharField(max_length=200)
    text = models.TextField(blank=True)
    refused = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "evidence"
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "source", "version"], name="research_evidence_once")]

    def __str__(self) -> str:
        return f"{self.source}@{self.version}"


class Claim(models.Model):
    """Something that the answer rests on: its place in the graph, what was found of it, and on what basis."""

    class Verdict(models.TextChoices):
        UNKNOWN = "unknown"
        SUPPORTED = "supported"
        CONTRADICTED = "contradicted"
        CONTESTED = "contested"

    run = models.UUIDField()
    name = models.CharField(max_length=200)
    statement = models.CharField(max_length=500)
    sources = models.JSONField(default=list)
    premises = models.JSONField(default=list)
    verdict = models.CharField(max_length=20, choices=Verdict.choices, default=Verdict.UNKNOWN)
    confidence = models.PositiveSmallIntegerField(default=0)
    gap = models.CharField(max_length=500, blank=True)
    provenance = models.JSONField(default=list)
    basis = models.CharField(max_length=80, blank=True)
    judged_by = models.UUIDField(null=True, blank=True)
    visit = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "name"], name="research_claim_once"),
            models.CheckConstraint(condition=Q(confidence__lte=100), name="research_claim_confidence"),
        ]

    def __str__(self) -> str:
        return self.name


class EvidenceRequest(models.Model):
    """A source that claims want and that is not there yet. `reference`: of the order under which the archive knows it."""

    run = models.UUIDField()
    source = models.CharField(max_length=200)
    kind = models.CharField(max_length=20)
    claims = models.JSONField(default=list)
    reference = models.CharField(max_length=200, blank=True)
    open = models.BooleanField(default=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "source"], name="research_request_once")]

    def __str__(self) -> str:
        return self.source
