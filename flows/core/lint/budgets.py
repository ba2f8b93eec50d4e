"""Rules about budgets: what one attempt sets aside is there to be set aside."""

from __future__ import annotations

from collections.abc import Iterator

from flows.core.budget import ZERO, Budget, Spend, written
from flows.core.lint.problem import Problem
from flows.core.lint.view import View


def attempts_fit(view: View) -> Iterator[Problem]:
    """No attempt needs more than the whole budget, without what is kept for verification: it could never begin."""
    budget = view.definition.budget
    if not isinstance(budget, Budget):
        return
    for name in view.nodes:
        verifies = bool(view.option(name, "verifies"))
        given = [one for one in (view.option(name, "spends"), view.option(name, "each")) if isinstance(one, Spend)]
        for kind, amount in [pair for one in given for pair in one.amounts.items()]:
            limit = budget.amounts.get(kind)
            if limit is None:
                continue
            usable = limit - (ZERO if verifies else budget.kept_of(kind))
            if amount > usable:
                kept = "" if verifies or not budget.kept_of(kind) else f" ({written(kind, budget.kept_of(kind))} are kept)"
                message = (
                    f"Node {name!r}: one attempt needs {written(kind, amount)} {kind.value}, and the flow may use "
                    f"{written(kind, usable)}{kept}."
                )
                yield view.problem(
                    "E061", message, "Let spends= (of an agent turn: each=) ask for less, or raise Meta.budget.", name
                )
