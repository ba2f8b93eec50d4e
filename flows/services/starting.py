"""How runs start, whoever has them started: a person, code, a parent, a schedule, an event, the run before.

    – ──► runnable    one statement for any number of runs of one flow that share their `Origin`
     └──► waiting, or refused: there is no room for a new run (`admitting`)
Guard: the key is free (of runs that retention has deleted, too); the intent, if one is given, is shared and active. A key that is taken is
answered with its run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import OperationalError, connections

from flows import telemetry
from flows.conf import conf
from flows.core import canonical, deadlines, payload
from flows.core.definition import Definition
from flows.core.errors import PayloadError
from flows.core.ids import new_id
from flows.core.misuse import IntentClosed, KeyConflict, UnknownIntent
from flows.core.nodes.activity import Activity
from flows.core.nodes.pipeline import Pipeline
from flows.core.protocol import IntentStatus, Outcome, Status
from flows.services import admitting, calendars, debounce, identify, inherit
from flows.services.hinting import hint_ready
from flows.store import locks
from flows.store import start as store
from flows.store.gate import policy
from flows.store.sql import committing, dumps

MAX_PRIORITY = 32767
SERIALIZATION_FAILURE = "40001"


@dataclass(frozen=True, slots=True)
class Started:
    """The answer of a start: the run that has this key now. `created` says whether this call made it."""

    id: UUID
    key: str | None
    intent_id: UUID
    status: str
    outcome: str
    created: bool

    def __str__(self) -> str:
        return str(self.id)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where runs come from and for whom they work: what they share, beside flow and version.

    Attributes:
        intent: the intent to work for; None: a new one each, with `goal` as its text. user_id, user_label: the accountable user.
        subject: the object that they are about. priority: higher is sooner; rank: their place among what is ready, None: by time and priority.
        parent: the run that has them started; depth: how many ancestors they have.
        ledgers: the ancestors on whose budgets they draw; None: on their own alone. chain: the first run of those that continue as new.
        tenant: for whom capacity is counted. started_by: what began them: "schedule:NAME", "event:ID", "child".
        ids: the ids that they get, in order; None: new ones. digest: of the input by which their key is known; "": that of their own.
        admit: new runs are counted, and may have to wait; False: they are obligations.
    """

    intent: Any = None
    goal: str = ""
    user_id: Any = None
    user_label: str = ""
    subject: Any = None
    priority: int = 0
    rank: datetime | None = None
    parent: UUID | None = None
    depth: int = 0
    ledgers: Sequence[UUID] | None = None
    chain: UUID | None = None
    tenant: str = ""
    started_by: str = ""
    ids: Sequence[UUID] | None = None
    digest: str = ""
    admit: bool = True

    @property
    def counted(self) -> bool:
        """Whether its runs are new work: children and continuations are not."""
        return self.admit and self.parent is None and self.chain is None


def start_runs(
    definition: Definition, runs: Iterable[tuple[str | None, Mapping[str, Any]]], origin: Origin, using: str
) -> list[Started]:
    """Start runs given as (key, input), or put their starts off where the flow says so; the answers come in the order given.

    Errors as `start_now`.
    """
    pause = debounce.pause_of(definition, origin)
    if pause is None:
        return start_now(definition, runs, origin, using)
    _check_priority(origin.priority, definition)
    ids = debounce.put_off(definition, _objects(definition, runs), origin, pause, using)
    return [Started(one, None, one, debounce.DEBOUNCED, "", created=False) for one in ids]


def start_now(
    definition: Definition, runs: Iterable[tuple[str | None, Mapping[str, Any]]], origin: Origin, using: str
) -> list[Started]:
    """Start runs given as (key, input), in one statement; the answers come in the order given.

    Raises:
        KeyConflict: a key is taken by another input. PayloadError: an input cannot be stored.
        UnknownIntent, IntentClosed: the intent is not there, or not active and a run is new.
        AdmissionRefused: there is no room for a new run; nothing is stored.
        OperationalError: in the caller's transaction, the run of a key was deleted meanwhile (a serialization failure: begin it anew).
    """
    given = list(runs)
    try:
        return _start(definition, given, origin, using)
    except OperationalError as error:
        # Retention has just deleted the run of a key, which is known from now on. Only the caller can begin a transaction of theirs anew.
        if connections[using].in_atomic_block or getattr(error.__cause__, "sqlstate", "") != SERIALIZATION_FAILURE:
            raise
    return _start(definition, given, origin, using)


def _start(
    definition: Definition, runs: Iterable[tuple[str | None, Mapping[str, Any]]], origin: Origin, using: str
) -> list[Started]:
    _check_priority(origin.priority, definition)
    ids = iter(origin.ids) if origin.ids is not None else iter(new_id, None)
    prepared = [_prepare(definition, key, value, origin, next(ids)) for key, value in runs]
    unique = _without_repeats(definition, prepared)
    if not unique:
        return []
    counted = origin.counted and admitting.applies(definition)
    newest = debounce.newest_of(definition, origin)
    # One run without a given intent is one statement, and needs no transaction around it.
    with committing("start", using) if counted or newest or origin.intent is not None or len(unique) > 1 else nullcontext():
        version = 1
        keys = debounce.lock_newest(definition, newest, _inputs(unique), using) if newest is not None else {}
        try:
            if origin.intent is not None:
                intent_id, version = _share_intent(origin.intent, using)
                unique = [replace(new, intent_id=intent_id) for new in unique]
            rows = store.start(unique, _common(definition, origin, version, using), using)
        except IntentClosed:  # what was started under it before is still the answer to the same call
            rows = store.taken(definition.name, [new.key for new in unique if new.key], using)
            if len(rows) < len(unique):
                raise
        created = {row.id for row in rows if row.created}
        if len(rows) < len(unique):
            rows += store.taken(definition.name, [new.key for new in unique if new.id not in created and new.key], using)
        made = {row.key if row.key is not None else row.id: row for row in rows}
        if version > 1 and origin.chain is None:  # who continues draws on what the first run has
            inherit.carry(definition, [new.id for new in unique if new.id in created], intent_id, version, using)
        waits = admitting.start(definition, _new(unique, created), using) if counted else set()
        debounce.replace_older(definition, [(one.id, keys[one.id]) for one in unique if one.id in created & set(keys)], using)
        answers = [_answer(definition, new, made, waits) for new in prepared]
        ready = [
            (row.id, _queue(definition), definition.name, definition.start) for row in rows if row.created and row.id not in waits
        ]
        hint_ready(ready, using)
    return answers


def _prepare(definition: Definition, key: str | None, value: Mapping[str, Any], origin: Origin, new: UUID) -> store.NewWorkflow:
    producer = f"the input of {definition.name}"
    _check_object(value, producer)
    if key is not None:
        payload.check_name(key, f"the key of {definition.name}")
    payload.check_text(origin.goal, f"the goal of {definition.name}", payload.MAX_TEXT)
    text = payload.encode(dict(value), producer, conf.MAX_INPUT_BYTES)
    digest = origin.digest or canonical.digest(dict(value), producer)
    goal = origin.goal.strip() or f"{definition.name} {key or ''}".strip()
    return store.NewWorkflow(new, new, key, text, digest, goal, identify.subject_text(origin.subject))


def _check_priority(priority: object, definition: Definition) -> None:
    if not isinstance(priority, int) or isinstance(priority, bool) or abs(priority) > MAX_PRIORITY:
        raise PayloadError(
            f"the priority of {definition.name}", f"must be a whole number up to {MAX_PRIORITY}, got {priority!r:.80}"
        )


def _check_object(value: object, producer: str) -> None:
    if not isinstance(value, Mapping):
        raise PayloadError(producer, f"must be an object (a dict), got {type(value).__name__}")


def _without_repeats(definition: Definition, prepared: Sequence[store.NewWorkflow]) -> list[store.NewWorkflow]:
    seen: dict[str, store.NewWorkflow] = {}
    unique = []
    for new in prepared:
        if new.key is not None and new.key in seen:
            if seen[new.key].digest != new.digest:
                raise KeyConflict(definition.name, new.key)
            continue
        if new.key is not None:
            seen[new.key] = new
        unique.append(new)
    return unique


def _share_intent(intent: Any, using: str) -> tuple[UUID, int]:
    intent_id = identify.intent_id(intent)
    found = locks.intent(intent_id, using, shared=True)
    if found is None:
        raise UnknownIntent(intent)
    version, status = found
    if status != IntentStatus.ACTIVE:
        raise IntentClosed(intent_id, status)
    return intent_id, version


def _queue(definition: Definition) -> str:
    first = definition.nodes[definition.start]
    return first.queue if isinstance(first, Activity) else "agents"


def _common(definition: Definition, origin: Origin, intent_version: int, using: str) -> dict[str, Any]:
    first = definition.nodes[definition.start]
    opens = isinstance(first, Activity) and first.gate is None
    step = first.steps[0] if isinstance(first, Pipeline) else None
    timeout = step.timeout if step else first.timeout if isinstance(first, Activity) else None
    lasts = calendars.measure(definition, using)
    return {
        "flow": definition.name,
        "flow_version": definition.version,
        "fingerprint": definition.fingerprint,
        "node": definition.start,
        "step": step.name if step else "",
        "opens": opens,
        "timeout": timeout.total_seconds() if timeout else 0.0,
        "queue": _queue(definition),
        "placement": first.placement if isinstance(first, Activity) else "",
        "priority": origin.priority,
        "priority_seconds": conf.PRIORITY_SECONDS,
        "deadline": lasts(definition.deadline) if definition.deadline else None,
        **deadlines.from_the_start(definition, lasts),
        "intent_version": intent_version,
        "own_intent": origin.intent is None,
        "user": origin.user_id,
        "user_label": origin.user_label,
        "rank": origin.rank,
        "parent": origin.parent,
        "depth": origin.depth,
        "ledgers": list(origin.ledgers) if origin.ledgers is not None else None,
        "chain": origin.chain,
        "tenant": origin.tenant,
        "started_by": origin.started_by,
        "note": dumps({telemetry.TRACEPARENT: trace}) if (trace := telemetry.current()) else None,
        "release": None,
        "policy": f"{definition.policy}@{policy(definition.policy, 0, using).version}" if definition.policy else "",
    }


def _new(unique: Sequence[store.NewWorkflow], created: set[UUID]) -> list[tuple[UUID, Mapping[str, Any]]]:
    """(id, input) of those that this call has made, in the order in which keys are locked."""
    made = [new for new in unique if new.id in created]
    return _inputs(sorted(made, key=lambda new: (new.key or "", new.id)))


def _inputs(new: Sequence[store.NewWorkflow]) -> list[tuple[UUID, Mapping[str, Any]]]:
    return [(one.id, payload.decode(json.loads(one.input))) for one in new]


def _objects(
    definition: Definition, runs: Iterable[tuple[str | None, Mapping[str, Any]]]
) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    for key, value in runs:
        _check_object(value, f"the input of {definition.name}")
        yield key, value


def _answer(definition: Definition, new: store.NewWorkflow, made: Mapping[Any, store.StartedRow], waits: set[UUID]) -> Started:
    row = made[new.key if new.key is not None else new.id]
    if row.id in waits:
        row = replace(row, status=Status.WAITING, outcome=Outcome.WAITING)
    if row.digest != new.digest:
        raise KeyConflict(definition.name, str(new.key))
    return Started(row.id, row.key, row.intent_id, row.status, row.outcome, row.created)
