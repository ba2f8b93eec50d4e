"""Review: what a person said about a request, and whether it was taken. Append-only."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from approvals.models.request import Request


class Review(models.Model):
    """One answer, taken (`refused` is empty) or refused with its code. It names the digest that the person had seen."""

    request = models.ForeignKey(Request, verbose_name=_("request"), on_delete=models.PROTECT, related_name="reviews")
    verdict = models.TextField(_("verdict"))
    digest = models.TextField(_("digest seen"))
    by = models.ForeignKey(settings.AUTH_USER_MODEL, verbose_name=_("by"), null=True, on_delete=models.SET_NULL, related_name="+")
    by_label = models.TextField(_("by"))
    comment = models.TextField(_("comment"), blank=True)
    refused = models.TextField(_("refused"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_review"
        verbose_name = _("review")
        verbose_name_plural = _("reviews")
        default_permissions = ("view",)
        constraints = [
            # One answer is taken; a quorum of N (part 4) makes it one for each reviewer.
            models.UniqueConstraint(fields=["request"], name="outlast_review_taken_once", condition=Q(refused="")),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.by_label}" + (f" ({self.refused})" if self.refused else "")
