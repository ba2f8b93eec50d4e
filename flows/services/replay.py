"""Replay of recorded workflows, many at a time: read in one snapshot, then replayed with every way out of the process closed.

    page of ids ──► read-only snapshot ──► histories ──► untouched: `flows.core.replay` ──► one answer a workflow
Nothing is reissued, and nothing is written: the server refuses it on this connection, `flows.services.untouched` everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from flows import registry
from flows.core.definition import Definition
from flows.core.history import Drift, History, Step
from flows.core.replay import Replay
from flows.services import identify
from flows.services.identify import get
from flows.services.recorded import Unreadable, histories
from flows.services.untouched import Touched, Untouched, untouched
from flows.store import history as store

T = TypeVar("T")

#: Workflows that are read together: enough to make the statements cheap, few enough to hold in memory.
BATCH = 500


@dataclass(frozen=True, slots=True)
class Replayed:
    """What replay found of one workflow.

    Attributes:
        arrows, decided: how many were looked at, and of how many the engine was asked again. unjudged: of how many it could not be, because
            they were decided under a version that this process does not know. drift: where record and replay part first.
        unknown: why it could not be replayed at all; "" if it was. steps: the arrows one by one, where that was asked for.
    """

    id: str
    flow: str
    version: int
    key: str | None
    arrows: int = 0
    decided: int = 0
    unjudged: int = 0
    drift: Drift | None = None
    unknown: str = ""
    steps: tuple[Step, ...] = ()

    def __bool__(self) -> bool:
        return self.drift is None and not self.unknown


def replay(
    workflows: Sequence[Any] | None = None,
    *,
    flow: str | None = None,
    live: bool = False,
    keep_steps: bool = False,
    using: str | None = None,
) -> Iterator[Replayed]:
    """Replay recorded workflows under the definitions that they ran under; one answer each, in order of id.

    Args:
        workflows: these; None: all. flow: of this flow only. live: those that have not ended only. keep_steps: answer with every arrow.
    Raises:
        UnknownWorkflow: one of `workflows` does not exist. NotAlone: it was called inside a transaction.
    """
    alias = identify.alias(using)

    def one(history: History, held: Untouched) -> Replayed:
        return _replayed(history, held, keep_steps=keep_steps)

    for found in each(workflows, one, flow=flow, live=live, using=alias):
        yield _unreadable(found) if isinstance(found, Unreadable) else found


def each(
    workflows: Sequence[Any] | None, look: Callable[[History, Untouched], T], *, flow: str | None, live: bool, using: str
) -> Iterator[T | Unreadable]:
    """What `look` says of each recorded history, untouched; a record that cannot be read is handed on as it is."""
    for ids in _pages(workflows, flow=flow, live=live, using=using):
        with store.snapshot(using):
            batch = list(histories(ids, using))
            with untouched() as held:
                answers = [history if isinstance(history, Unreadable) else look(history, held) for history in batch]
        yield from answers


def _pages(workflows: Sequence[Any] | None, *, flow: str | None, live: bool, using: str) -> Iterator[list[UUID]]:
    if workflows is not None:
        ids = [get(workflow, using).pk for workflow in workflows]
        for start in range(0, len(ids), BATCH):
            yield ids[start : start + BATCH]
        return
    after = UUID(int=0)
    while page := store.page(after, flow=flow, live=live, limit=BATCH, using=using):
        yield page
        after = page[-1]


def _replayed(history: History, held: Untouched, *, keep_steps: bool) -> Replayed:
    definition = registry.definition(history.flow, history.version)
    if definition is None:
        return _answer(history, unknown=f"{history.flow}@{history.version} is not known to this process")
    if history.fingerprint != definition.fingerprint:
        return _answer(history, drift=Drift(1, "fingerprint", history.fingerprint, definition.fingerprint))
    return run(history, definition, held, keep_steps=keep_steps)


def run(history: History, definition: Definition, held: Untouched, *, strict: bool = True, keep_steps: bool = False) -> Replayed:
    """One history under one definition. What reaches out of the process is a drift at the arrow whose decision did."""
    try:
        replaying = Replay(history, definition, strict=strict, older=_older(history) if strict else {})
    except Exception as error:  # noqa: BLE001 - a note that was written by hand may have any shape, and the others are still asked about
        return _answer(history, drift=Drift(1, "record", said(error), None))
    steps: list[Step] = []
    drift: Drift | None = None
    held.tried.clear()
    try:
        for step in replaying.steps():
            drift = step.drift
            if keep_steps:
                steps.append(step)
            if held.tried and step.logged is not None:  # the function swallowed the refusal
                drift = Drift(step.logged.seq, "outside", None, f"a function of the flow {held.tried[0]}")
                break
    except Touched as touched:
        drift = Drift(replaying.course.seq + 1, "outside", None, str(touched))
    except Exception as error:  # noqa: BLE001 - so may every other row
        drift = Drift(replaying.course.seq + 1, "record", said(error), None)
    counted = {"arrows": replaying.course.seq, "decided": replaying.decided, "unjudged": replaying.unjudged}
    return _answer(history, **counted, drift=drift, steps=tuple(steps))


def said(error: Exception) -> str:
    """What an odd record made of the engine, for those who read the report."""
    return f"{type(error).__name__}: {error}"[:300]


def _older(history: History) -> dict[int, Definition]:
    """The definitions under which it ran before it was migrated, as far as they are known here."""
    passed = {t.version("from") for t in history.log if t.trigger == "migrate"} - {None}
    found = {version: registry.definition(history.flow, version) for version in passed if version is not None}
    return {version: definition for version, definition in found.items() if definition is not None}


def _answer(history: History, **found: Any) -> Replayed:
    return Replayed(history.id, history.flow, history.version, history.key, **found)


def _unreadable(found: Unreadable) -> Replayed:
    return Replayed(found.id, found.flow, found.version, found.key, unknown=found.problem)
