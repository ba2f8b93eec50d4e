"""Review: what a person said about a request, and whether it was taken. Append-only."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from approvals.core.status import VERDICTS
from approvals.models.request import Request

_COUNTS = Q(refused="", verdict__in=sorted(VERDICTS))


class Review(models.Model):
    """One answer, taken (`refused` is empty) or refused with its code. It names the digest that the person had seen.

    `values`: what a form was filled in with, if it was taken.
    `for_user`: in whose name it counts, by which delegation; empty: in the own name. A "revoke" takes back the approval and answers nothing.
    """

    request = models.ForeignKey(Request, verbose_name=_("request"), on_delete=models.PROTECT, related_name="reviews")
    verdict = models.TextField(_("verdict"))
    digest = models.TextField(_("digest seen"))
    by = models.ForeignKey(settings.AUTH_USER_MODEL, verbose_name=_("by"), null=True, on_delete=models.SET_NULL, related_name="+")
    by_label = models.TextField(_("by"))
    for_user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("in the name of"), null=True, on_delete=models.SET_NULL, related_name="+"
    )
    for_label = models.TextField(_("in the name of"), blank=True)
    delegation_id = models.BigIntegerField(null=True)
    step = models.IntegerField(default=0)
    comment = models.TextField(_("comment"), blank=True)
    values = models.JSONField(_("values"), null=True)
    refused = models.TextField(_("refused"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_review"
        verbose_name = _("review")
        verbose_name_plural = _("reviews")
        default_permissions = ("view",)
        constraints = [
            # Everybody counts once. Crosswise (who answers, and in whose name somebody did) the judge looks, under the request's lock.
            models.UniqueConstraint(fields=["request", "by"], name="outlast_review_by_once", condition=_COUNTS),
            models.UniqueConstraint(fields=["request", "for_user"], name="outlast_review_for_once", condition=_COUNTS),
        ]
        indexes = [models.Index(fields=["at"], name="outlast_review_taken_at", condition=Q(refused=""))]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.by_label}" + (f" ({self.refused})" if self.refused else "")
