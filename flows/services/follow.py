"""What an arrow made true, followed in memory, so that the owner's next decision needs no read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from flows.core import moves
from flows.core.decide import Decided
from flows.core.nodes.activity import Activity
from flows.core.nodes.pipeline import Pipeline, first_step
from flows.core.state import ActivityState, Completed, State, Trigger
from flows.services.owned import Owned


def now_running(
    owned: Owned, trigger: Trigger, move: moves.Open, visit: int, *, version: int, seq: int, decided: Decided
) -> None:
    """The activity that `move` opened runs now."""
    state, row = owned.state, owned.row
    results = known_results(owned, trigger, decided)
    if move.step and visit > state.visits.get(move.node, 0):  # a pipeline's results are those of its newest visit
        results = MappingProxyType({node: result for node, result in results.items() if node != move.node})
    row.node, row.version, row.error_code = move.node, version, None
    row.active_seq = row.activity_seq = seq
    row.step, row.visit, row.number, row.fence = move.step, visit, 1, 1
    row.failures, row.lost, row.last_error, row.notes, row.opened_at = 0, 0, None, None, state.now
    if owned.facts.look is not None:
        owned.facts = replace(owned.facts, look=None)  # that was another attempt's
    owned.state = replace(
        state,
        node=move.node,
        wait=None,
        results=results,
        passed=still_passed(state, decided),
        visits=MappingProxyType({**state.visits, move.node: visit}),
        activity=ActivityState(seq=seq, node=move.node, step=move.step, visit=visit, number=1, fence=1, opened_at=state.now),
    )


def still_passed(state: State, decided: Decided) -> tuple[tuple[str, str], ...]:
    """The passed deadlines that this decision has not handled."""
    return tuple(one for one in state.passed if one not in decided.handled) if decided.handled else state.passed


def known_results(owned: Owned, trigger: Trigger, decided: Decided) -> Mapping[str, Any]:
    state = owned.state
    if state.wait is not None and decided.wait_result is not None:
        return MappingProxyType({**state.results, state.wait.node: decided.wait_result})
    if not isinstance(trigger, Completed) or state.activity is None:
        return state.results
    result = trigger.result
    if step := state.activity.step:
        first = owned.definition is not None and first_step(owned.definition.nodes[state.node]) == step
        result = {**({} if first else state.results.get(state.node) or {}), step: result}
    return MappingProxyType({**state.results, state.node: result})


def timeout_of(node: Activity, step: str) -> float:
    span = node.step(step).timeout if isinstance(node, Pipeline) and step else node.timeout
    return span.total_seconds()
