"""Budget, BudgetEntry: what work may cost, and every change of it (N1, N2)."""

from __future__ import annotations

from decimal import Decimal

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from flows.core.budget import written
from flows.models.guards import known


class Budget(models.Model):
    """The ledger of one kind for one workflow, or for one intent (all its workflows together).

    `spent` and `reserved` may together not pass `allowance`; `kept` of it is for verification and reconciliation only. A reservation whose
    attempt died counts as spent until it is settled. An allowance of NULL is counted and never refused.
    """

    workflow = models.ForeignKey(
        "outlast_flows.Workflow",
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="budgets",
        db_constraint=False,
        db_index=False,
    )
    intent = models.ForeignKey(
        "outlast_flows.Intent",
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="budgets",
        db_constraint=False,
        db_index=False,
    )
    kind = models.TextField(_("kind"))
    allowance = models.DecimalField(_("limit"), max_digits=20, decimal_places=6, null=True)
    soft = models.DecimalField(_("soft limit"), max_digits=20, decimal_places=6, null=True)
    kept = models.DecimalField(_("kept for verification and reconciliation"), max_digits=20, decimal_places=6, default=0)
    spent = models.DecimalField(_("spent"), max_digits=20, decimal_places=6, default=0)
    reserved = models.DecimalField(_("reserved"), max_digits=20, decimal_places=6, default=0)
    warned_at = models.DateTimeField(_("warned"), null=True)
    updated_at = models.DateTimeField(_("updated"))

    class Meta:
        db_table = "outlast_budget"
        verbose_name = _("budget")
        verbose_name_plural = _("budgets")
        default_permissions = ("view",)
        permissions = [("raise_budget", _("Can raise budgets"))]
        constraints = [
            known("outlast_budget_kind", "budget kind", "kind"),
            models.UniqueConstraint(
                fields=["workflow", "kind"], name="outlast_budget_of_workflow", condition=Q(workflow__isnull=False)
            ),
            models.UniqueConstraint(
                fields=["intent", "kind"], name="outlast_budget_of_intent", condition=Q(intent__isnull=False)
            ),
            models.CheckConstraint(
                name="outlast_budget_of_one",
                condition=Q(workflow__isnull=False, intent__isnull=True) | Q(workflow__isnull=True, intent__isnull=False),
            ),
            models.CheckConstraint(name="outlast_budget_counts", condition=Q(spent__gte=0, reserved__gte=0, kept__gte=0)),
        ]

    def __str__(self) -> str:
        spent = written(self.kind, Decimal(self.spent))
        if self.allowance is None:
            return f"{self.kind}: {spent}, not limited"
        return f"{self.kind}: {spent} of {written(self.kind, Decimal(self.allowance))}"


class BudgetEntry(models.Model):
    """One change of a ledger: reserved, settled, spent, raised, or carried over. Append-only. `call`: the journal's entry that it is about."""

    budget = models.ForeignKey(Budget, on_delete=models.DO_NOTHING, related_name="entries", db_constraint=False)
    entry = models.TextField(_("entry"))
    amount = models.DecimalField(_("amount"), max_digits=20, decimal_places=6)
    workflow_id = models.UUIDField(null=True)
    node = models.TextField(_("node"), blank=True)
    activity_seq = models.IntegerField(null=True)
    attempt = models.IntegerField(null=True)
    call = models.IntegerField(default=0, db_default=0)
    reason = models.TextField(_("reason"), blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    by_label = models.TextField(_("by"), blank=True)
    at = models.DateTimeField(_("at"))

    class Meta:
        db_table = "outlast_budget_entry"
        verbose_name = _("budget entry")
        verbose_name_plural = _("budget entries")
        default_permissions = ("view",)
        constraints = [known("outlast_budget_entry_entry", "budget entry", "entry")]
        indexes = [models.Index(fields=["workflow_id", "activity_seq"], name="outlast_budget_entry_of")]

    def __str__(self) -> str:
        return f"{self.entry} {written('cost', Decimal(self.amount))}"
