"""The timers of freshness budgets (`Fresh(…, within=…, then=…)`): one a name, from the newest baseline until no node ahead stands on it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from flows.core.nodes.base import Node
from flows.core.protocol import TimerKind
from flows.services.owned import Owned
from flows.store import deadlines as store


def passed(owned: Owned, node: Node, baseline: Collection[str]) -> None:
    """An attempt at `node` passes, in this transaction. `baseline`: the names of which it took a new one."""
    assert owned.definition is not None
    budgets = owned.definition.freshness
    renewed = {name: budgets[name] for name in baseline if name in budgets}
    wanted = owned.definition.wanted_after(node.name)
    stood_on = [
        name for name in (node.gate.fresh if node.gate else ()) if name in budgets and name not in renewed and name not in wanted
    ]
    if renewed:
        store.renew(owned.row.id, renewed, owned.using)
        over = {(TimerKind.FRESHNESS.value, name) for name in renewed}
        owned.state = replace(owned.state, passed=tuple(one for one in owned.state.passed if one not in over))
    if stood_on:
        store.used(owned.row.id, stood_on, owned.using)
