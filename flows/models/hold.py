"""Hold: what no worker takes up until it is lifted; one row, however many runs it stops."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.core.holds import Scope

SCOPES = [
    (Scope.ALL.value, _("Everything")),
    (Scope.FLOW.value, _("A flow")),
    (Scope.KEY.value, _("A key")),
    (Scope.DEPENDENCY.value, _("A dependency")),
    (Scope.TENANT.value, _("A tenant")),
]


class Hold(models.Model):
    """Open until `lifted_at`. `name`: of what `scope` says; empty where everything is held. Never deleted: it says who stopped what, and why."""

    scope = models.TextField(_("scope"), choices=SCOPES)
    name = models.TextField(_("name"), blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("by"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    by_label = models.TextField(_("by"), blank=True)
    reason = models.TextField(_("reason"))
    since = models.DateTimeField(_("since"))
    lifted_at = models.DateTimeField(_("lifted"), null=True)
    lifted_by = models.TextField(_("lifted by"), blank=True, default="", db_default="")
    lifted_reason = models.TextField(_("reason of the lift"), blank=True, default="", db_default="")

    class Meta:
        db_table = "outlast_hold"
        verbose_name = _("hold")
        verbose_name_plural = _("holds")
        default_permissions = ("view",)
        permissions = [("hold_work", _("Can hold what workers take up, and lift it"))]
        constraints = [
            models.CheckConstraint(
                name="outlast_hold_scope",
                condition=Q(scope=Scope.ALL.value, name="")
                | (Q(scope__in=[s.value for s in Scope if s != Scope.ALL]) & ~Q(name="")),
            ),
            models.UniqueConstraint(fields=["scope", "name"], name="outlast_hold_open", condition=Q(lifted_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.name}".strip()
