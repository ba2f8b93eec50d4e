"""Flows with budgets, and what the ledgers say."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from flows import COMPLETE, Activity, Budget, Decision, End, Flow, Kept, Spend
from flows.core.nodes import Candidate
from flows.models import Budget as Ledger
from flows.models import BudgetEntry, Intent
from tests import factories


def think(attempt: Any) -> Candidate:
    """A model that always says the same."""
    answer = factories.work(attempt)
    return Candidate("go", {"n": attempt.visit, "said": answer})


class Thinker(Flow):
    """One decision (a call), a verifier, and a step that costs nothing."""

    class Meta:
        name = "t-thinker"
        budget = Budget(model_calls=3, model_tokens=1000, soft=0.5, kept=Kept(model_calls=1))

    think = Decision(think, spends=Spend(model_calls=1, model_tokens=400), retry=factories.SLOWLY, choices={"go": "check"})
    check = Activity(factories.work, verifies="think", spends=Spend(model_calls=1), retry=factories.SLOWLY, then="rest")
    rest = Activity(factories.work, then="done")
    done = End(COMPLETE)


def ledger(run: Any, kind: str = "model_calls") -> Ledger:
    """The ledger of a run, or of an intent."""
    owner = {"intent_id": run.pk} if isinstance(run, Intent) else {"workflow_id": run.id}
    return Ledger.objects.get(kind=kind, **owner)


def amounts(run: Any, kind: str = "model_calls") -> tuple[Decimal, Decimal]:
    """(spent, reserved)."""
    found = ledger(run, kind)
    return found.spent, found.reserved


def entries(run: Any, kind: str = "model_calls") -> list[tuple[str, Decimal]]:
    """(entry, amount) of its ledger, in order."""
    return list(BudgetEntry.objects.filter(budget=ledger(run, kind)).order_by("pk").values_list("entry", "amount"))


def intent_of(run: Any) -> Intent:
    """The intent that a run works for."""
    return Intent.objects.get(pk=run.intent_id)
