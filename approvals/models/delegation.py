"""Delegation: one person stands in for another, for a time. It gives the other's place among those who are asked, never a permission."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from flows.core import visible


class Delegation(models.Model):
    """From `giver` to `taker`; what is named of role, pool and flow limits it. It ends at its time or when it is revoked; the row stays."""

    giver = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("from"), null=True, on_delete=models.SET_NULL, related_name="+"
    )
    giver_label = models.TextField(_("from"))
    taker = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("to"), null=True, on_delete=models.SET_NULL, related_name="+"
    )
    taker_label = models.TextField(_("to"))
    starts_at = models.DateTimeField(_("from the moment"))
    ends_at = models.DateTimeField(_("until"))
    role = models.TextField(_("only for the role"), blank=True)
    pool = models.TextField(_("only for the pool"), blank=True)
    flow = models.TextField(_("only for the flow"), blank=True)
    reason = models.TextField(_("reason"))
    made_by_label = models.TextField(_("made by"))
    made_at = models.DateTimeField(_("made"))
    revoked_at = models.DateTimeField(_("revoked"), null=True)
    revoked_by_label = models.TextField(_("revoked by"), blank=True)

    class Meta:
        db_table = "outlast_delegation"
        verbose_name = _("delegation")
        verbose_name_plural = _("delegations")
        default_permissions = ("view",)
        permissions = [
            ("delegate_own", _("Can delegate their own place among reviewers")),
            ("delegate_any", _("Can make and revoke delegations of others")),
        ]
        constraints = [
            models.CheckConstraint(name="outlast_delegation_dated", condition=Q(ends_at__gt=F("starts_at"))),
            models.CheckConstraint(name="outlast_delegation_to_another", condition=~Q(giver=F("taker"))),
        ]
        indexes = [
            models.Index(fields=["taker", "ends_at"], name="outlast_delegation_of_taker", condition=Q(revoked_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return visible.plain(f"{self.giver_label} → {self.taker_label}")
