"""Policy, Release, CurrentRelease, Competence, CompetenceOpening: under what a workflow may act, as versioned records (H1, I1)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


def _person() -> models.ForeignKey:  # type: ignore[type-arg]
    return models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)


class Policy(models.Model):
    """One version of a named policy. Append-only: a policy changes by its next version.

    `blocks`: runs that were started under an older version stop until a person adopts this one for them.
    """

    name = models.TextField(_("name"))
    version = models.IntegerField(_("version"))
    body = models.JSONField(_("body"))
    digest = models.TextField(_("digest"))
    blocks = models.BooleanField(_("blocks older runs"))
    note = models.TextField(_("note"), blank=True)
    by = _person()
    by_label = models.TextField(_("by"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_policy"
        verbose_name = _("policy")
        verbose_name_plural = _("policies")
        default_permissions = ("view",)
        permissions = [("publish_policy", _("Can publish policies and adopt them for runs"))]
        constraints = [models.UniqueConstraint(fields=["name", "version"], name="outlast_policy_once")]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class Release(models.Model):
    """A behavioural release: which models, prompts, tools and policies, each by its hash. Append-only.

    `compatible_with`: names of the releases whose pinned runs may go on under this one.
    """

    name = models.TextField(_("name"), unique=True)
    model_hashes = models.JSONField(_("models"))
    prompt_hashes = models.JSONField(_("prompts"))
    tool_hashes = models.JSONField(_("tools"))
    policy_hashes = models.JSONField(_("policies"))
    digest = models.TextField(_("digest"))
    compatible_with = models.JSONField(_("compatible with"))
    note = models.TextField(_("note"), blank=True)
    by = _person()
    by_label = models.TextField(_("by"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_release"
        verbose_name = _("release")
        verbose_name_plural = _("releases")
        default_permissions = ("view",)
        permissions = [("manage_release", _("Can register releases, make one current and move runs"))]

    def __str__(self) -> str:
        return str(self.name)


class CurrentRelease(models.Model):
    """The release that new runs of a flow are pinned to; the empty flow stands for all flows that have none of their own."""

    flow_name = models.TextField(_("flow"), primary_key=True)
    release = models.TextField(_("release"))
    reason = models.TextField(_("reason"), blank=True)
    by_label = models.TextField(_("by"), blank=True)
    since = models.DateTimeField(_("since"))

    class Meta:
        db_table = "outlast_current_release"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.flow_name or '*'}: {self.release}"


class Competence(models.Model):
    """The envelope of one node of a flow under one release: how many failed verifications it may have before a person is asked."""

    flow_name = models.TextField(_("flow"))
    node = models.TextField(_("node"))
    release = models.TextField(_("release"), blank=True)
    allowed = models.IntegerField(_("errors allowed"))
    burned = models.IntegerField(_("errors"), default=0)
    closed_at = models.DateTimeField(_("closed"), null=True)
    note = models.TextField(_("note"), blank=True)
    by_label = models.TextField(_("by"), blank=True)
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        db_table = "outlast_competence"
        verbose_name = _("competence envelope")
        verbose_name_plural = _("competence envelopes")
        default_permissions = ("view",)
        permissions = [("open_competence", _("Can open a closed competence envelope again"))]
        constraints = [
            models.UniqueConstraint(fields=["flow_name", "node", "release"], name="outlast_competence_once"),
            models.CheckConstraint(name="outlast_competence_counts", condition=Q(allowed__gte=0, burned__gte=0)),
        ]

    def __str__(self) -> str:
        return f"{self.flow_name}.{self.node}: {self.burned}/{self.allowed}"


class CompetenceOpening(models.Model):
    """That a closed envelope was opened again: what it had counted, since when it was closed, who opened it, and why. Append-only."""

    flow_name = models.TextField(_("flow"))
    node = models.TextField(_("node"))
    release = models.TextField(_("release"), blank=True)
    burned = models.IntegerField(_("errors"))
    allowed = models.IntegerField(_("errors allowed"))
    closed_at = models.DateTimeField(_("closed"))
    reason = models.TextField(_("reason"))
    by = _person()
    by_label = models.TextField(_("by"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_competence_opening"
        verbose_name = _("opening of an envelope")
        verbose_name_plural = _("openings of envelopes")
        default_permissions = ("view",)
        indexes = [models.Index(fields=["flow_name", "node", "release", "id"], name="outlast_competence_opened")]

    def __str__(self) -> str:
        return f"{self.flow_name}.{self.node}, {self.at}"
