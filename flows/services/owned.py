"""A workflow in the hands of its owner: the claimed row, its definition, and the state that the engine is asked about."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.decide import DEFINITION_FAULT
from flows.core.definition import Definition
from flows.core.ids import operation_id
from flows.core.nodes.job import ANSWER
from flows.core.protocol import BudgetKind, IntentStatus
from flows.core.releases import judge
from flows.core.state import (
    GIVEN,
    ActivityState,
    ApprovalFact,
    Completed,
    Entered,
    Facts,
    PolicyFact,
    ReleaseFact,
    State,
    Trigger,
    WaitState,
    Woken,
)
from flows.services import calendars, ledger, stored
from flows.store import gate, operations, releases, tick
from flows.store.claim import Claimed
from flows.store.load import Loaded, load
from flows.store.sql import loads


@dataclass(slots=True)
class Owned:
    """What one worker owns for one turn. `pause`: somebody asked for a pause meanwhile. `hinted`: this turn said that it is ready again.

    `steps`: the versions through which it is migrated first. `blocked`: why it cannot go on under any definition that is known here.
    `lacks`: what of a budget the next call of its agent turn needs, where there was no room for it.
    """

    row: Claimed
    definition: Definition | None
    state: State
    facts: Facts
    worker: UUID
    pid: int
    using: str
    pause: bool = False
    hinted: bool = False
    steps: tuple[Definition, ...] = ()
    blocked: str = ""
    told_at: float = field(default_factory=time.monotonic)
    lacks: Mapping[BudgetKind, Decimal] = field(default_factory=dict)

    def tell_time(self, now: datetime | None = None) -> None:
        """Let `state.now` be this moment: what the durable clock says, or what it said when it was read and the time since."""
        moment = time.monotonic()
        self.state = replace(self.state, now=now or self.state.now + timedelta(seconds=moment - self.told_at))
        self.told_at = moment

    @property
    def opening(self) -> Trigger:
        """The trigger with which a turn begins."""
        if self.state.activity is None and self.state.wait is None:
            if self.row.error_code == DEFINITION_FAULT and self.row.node in self.state.results:
                return Completed(self.state.results[self.row.node])  # done, with whatever it returned; only the way on is missing
            return Entered(self.row.error_code)
        return Woken()

    @property
    def label(self) -> str:
        """Flow and node in the author's words."""
        return f"{self.row.flow_name}.{self.row.node}"


def take(rows: Sequence[Claimed], worker: UUID, pid: int, using: str) -> list[Owned]:
    """The states of claimed rows. What the claim could not read for certain is read with a new snapshot."""
    stale = [row.id for row in rows if row.loaded is None and not row.fresh]
    loaded = load(stale, using) if stale else {}
    return [build(row, row.loaded or loaded.get(row.id), worker, pid, using) for row in rows]


def reload(owned: Owned) -> bool:
    """Read the state again after a lost guard; False if the workflow has moved on without this owner."""
    found = load([owned.row.id], owned.using).get(owned.row.id)
    if found is None or found.version != owned.row.version:
        return False
    owned.row.wake_seq, owned.row.owed = found.wake_seq, found.owed
    fresh = build(owned.row, found, owned.worker, owned.pid, owned.using)
    owned.state, owned.facts, owned.pause, owned.told_at = fresh.state, fresh.facts, fresh.pause, fresh.told_at
    return True


def build(row: Claimed, loaded: Loaded | None, worker: UUID, pid: int, using: str) -> Owned:
    """Assemble state and facts from the claimed row and what was loaded beside it."""
    definition = registry.definition(row.flow_name, row.flow_version)
    facts = Facts(
        intent_version=loaded.intent_version if loaded else row.intent_version,
        intent_status=loaded.intent_status if loaded else IntentStatus.ACTIVE,
        fingerprint=row.fingerprint,
        approvals=approval_facts(definition, row.id, using),
        overloaded=_overloaded(definition, using),
        degraded=bool(loaded and loaded.degraded),
        policy=policy_fact(row, using),
        release=_release(definition, row, using) if row.release else None,
        reviews=ledger.reviews(definition, row.id, row.intent_id, using, row.ledgers),
    )
    state = with_calendars(state_of(row, loaded, using), definition, using)
    taking = state.activity is not None and state.activity.known  # its own version takes the result
    return Owned(
        row,
        definition,
        state,
        facts,
        worker,
        pid,
        using,
        bool(loaded and loaded.pause_requested),
        steps=() if taking else registry.at_wake(row.flow_name, row.flow_version),
    )


def with_calendars(state: State, definition: Definition | None, using: str) -> State:
    """The same with the calendars by which the flow counts, where it names any."""
    named = definition.calendars if definition is not None else ()
    return replace(state, calendars=calendars.newest(named, using)) if named else state


def state_of(row: Claimed, loaded: Loaded | None, using: str) -> State:
    """The workflow as the engine, and the author's pure functions, see it."""
    results, visits = history_of(loaded)
    activity = None
    if row.active_seq is not None and row.number is not None:
        activity = ActivityState(
            seq=row.active_seq,
            node=row.node,
            step=row.step or "",
            visit=row.visit or 1,
            number=row.number,
            fence=row.fence or 0,
            failures=row.failures or 0,
            lost=row.lost or 0,
            last_error=row.last_error,
            notes=payload.decode(loads(row.notes)),
            doubt=row.owed > 0 and bool(operations.left_open(row.id, using)),
            opened_at=row.opened_at,
        )
        if activity.number > 1 or activity.failures or activity.lost or row.owed:
            activity = _with_effects(activity, row, using)
        visits[row.node] = max(visits.get(row.node, 0), activity.visit)
    return State(
        workflow_id=str(row.id),
        flow=row.flow_name,
        version=row.flow_version,
        key=row.key,
        node=row.node,
        input=MappingProxyType(payload.decode(loads(row.input))),
        now=loaded.now if loaded else row.now,
        results=MappingProxyType(results),
        visits=MappingProxyType(visits),
        intent_version=row.intent_version,
        epoch=row.epoch,
        activity=activity,
        wait=_wait(loaded),
        passed=loaded.passed if loaded else (),
        words=MappingProxyType(loaded.words) if loaded else MappingProxyType({}),
        dice=random.random(),
    )


def _with_effects(activity: ActivityState, row: Claimed, using: str) -> ActivityState:
    """What this visit has begun before, from the record alone: what this process has loaded of the flow says nothing about it."""
    own = operation_id(row.id, activity.node, activity.visit)
    known, begun = operations.begun(own, row.id, activity.seq, using)
    return replace(activity, known=known and not activity.doubt and activity.step != ANSWER, begun=begun)


def policy_fact(row: Claimed, using: str) -> PolicyFact | None:
    """What became of the policy that the workflow is bound to, if it is bound to one."""
    name, _, version = row.policy_version.rpartition("@")
    if not name:
        return None
    current = gate.policy(name, int(version), using)
    return PolicyFact(name, int(version), current.version, current.blocks)


def _release(definition: Definition | None, row: Claimed, using: str) -> ReleaseFact | None:
    """What the flow's policy makes of the current release, for a run that is pinned to one."""
    known = releases.fact(row.id, using) if definition is not None else None
    if known is None or definition is None:
        return None
    return judge(
        definition.release_policy,
        known.pinned,
        known.current,
        same=known.same,
        compatible=known.compatible,
        passed_over=known.passed_over,
    )


def _overloaded(definition: Definition | None, using: str) -> frozenset[str]:
    """Those queues of this flow's optional activities in which ready work has waited too long."""
    limit = conf.OVERLOAD_SECONDS
    if definition is None or limit is None or not definition.optional_queues:
        return frozenset()
    return frozenset(queue for queue in definition.optional_queues if (tick.oldest(queue, using) or 0.0) > float(limit))


def approval_facts(definition: Definition | None, workflow_id: UUID, using: str) -> Mapping[str, ApprovalFact | None]:
    """What the human plane knows of the approvals that this flow's gates ask about."""
    plane = registry.wait_plane("approval")
    if definition is None or not definition.approvals or plane is None:
        return {}
    return plane.facts(using, workflow_id, sorted(definition.approvals))


def history_of(loaded: Loaded | None) -> tuple[dict[str, Any], dict[str, int]]:
    """The newest result of each node, and how often each was entered."""
    results: dict[str, Any] = {}
    visits: dict[str, int] = {}
    if loaded is None:
        return results, visits
    given: dict[str, tuple[int, Any]] = {}
    newest: dict[str, int] = {}
    for node, _step, visit, _done, _result in loaded.activities:
        visits[node] = max(visits.get(node, 0), visit)
    for node, step, _visit, done, result in loaded.activities:
        if done is None:
            continue
        if step == GIVEN:
            given[node] = done, result
            continue
        newest[node] = max(newest.get(node, 0), done)
        if not step:
            results[node] = payload.decode(result)
        elif done == visits[node]:
            results.setdefault(node, {})[step] = payload.decode(result)
    entered = dict(visits)
    for node, visit, of, result in loaded.waits:
        visits[node] = max(visits.get(node, 0), visit)
        if result is not None and of >= entered.get(node, 0):  # of a job, a later visit may have begun since
            newest[node] = max(newest.get(node, 0), of)
            results[node] = payload.decode(result)
    for node, (visit, result) in given.items():  # counts until a later visit has a result of its own
        if visit >= newest.get(node, 0):
            results[node] = payload.decode(result)
    return results, visits


def _wait(loaded: Loaded | None) -> WaitState | None:
    if loaded is None or loaded.open_wait is None:
        return None
    wait_id, node, kind, visit, evidence, due, reason, on_expiry = loaded.open_wait
    return WaitState(wait_id, node, kind, visit, evidence_of(evidence), due, reason, on_expiry)


def evidence_of(found: Any) -> Any:
    """Evidence as the engine gets it."""
    return stored.inside(found, payload.decode)
