"""Holds: everything, the runs of a flow, of a key or of a tenant, or the work that needs a dependency, is not taken up until that is lifted.

    – ──► open       hold    one INSERT; the pair (scope, name) is open once
    open ──► lifted  lift    one UPDATE, guarded by `lifted_at IS NULL`; after it workers are told of what is ready

A hold writes nothing to a workflow: it is a filter of the claim, and of who is let in to what is scarce. A turn that has something in its hands
finishes the running step, keeps its result, and lets go before the next one. What passes every hold: cancel, and the servicing of what is owed
(both need no claim); arrivals, timers and deadlines are recorded, and acted on when the run is taken up.
Races: two who hold the same: one row, the other is told `already`. A claim that has not seen the hold yet: its run lets go at its next step.
A claim that has not seen the lift yet: the hint after the lift, or the next tick, finds the run.
Of one workflow: pause.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from flows import registry
from flows.core.capacity import Dependency
from flows.core.holds import Scope, check
from flows.core.misuse import UnknownDependency, UnknownFlow
from flows.models import Dependency as DependencyRow
from flows.models import Worker, Workflow
from flows.models.worker import WorkerStatus
from flows.services import hinting, identify, warrant
from flows.services.control import Answer
from flows.store import holds as store
from flows.store import tick
from flows.store.holds import Row
from flows.store.sql import committing

PERMISSION = "outlast_flows.hold_work"
#: What a hold stops is counted up to here.
MOST = 10_000
#: So many ready rows of a queue are hinted at when a hold is lifted; turns go on until nothing is ready.
HINTED = 200


@dataclass(frozen=True, slots=True)
class Held:
    """What became of a hold or a lift: accepted, or already (it was so before). `hold`: the row; None: nothing of that was held."""

    answer: Answer
    hold: Row | None

    def __bool__(self) -> bool:
        return self.answer is Answer.ACCEPTED


def hold(scope: str, name: str = "", *, reason: str, by: Any = None, using: str | None = None) -> Held:
    """Have nothing of this taken up until it is lifted. Twice is once.

    Args:
        scope: "all" (without a name), "flow", "key", "dependency" or "tenant". name: the name of it, exactly. reason: why; people read it.
        by: who says so; a user needs `outlast_flows.hold_work`.
    Raises:
        CannotHold: scope and name do not go together. UnknownFlow, UnknownDependency: nobody knows the name, so nothing would be held.
        NotAUser. ReasonMissing. NotPermitted: `by` lacks the right.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    text = warrant.reason(reason, "why nothing of this is to be taken up")
    kind, known = check(scope, name)
    _is_known(kind, known, alias)
    with committing("hold", alias):
        said: dict[str, Any] = {"user": identify.user_key(by), "by": identify.label(by), "reason": text, "using": alias}
        while (made := store.add(kind, known, **said)) is None:
            if (found := store.open_of(kind, known, alias)) is not None:
                return Held(Answer.ALREADY, found)  # else it was lifted between the two statements
    return Held(Answer.ACCEPTED, made)


def lift(scope: str, name: str = "", *, reason: str, by: Any = None, seen: int | None = None, using: str | None = None) -> Held:
    """Let this be taken up again. Twice is once; what another hold is about, too, stays held.

    Args:
        seen: the hold that who asks has seen (its id); one that somebody made since stays. None: whichever it is.
        The others as `hold`.
    Raises:
        As `hold`, without a look whether anybody knows the name.
    """
    alias = identify.alias(using)
    warrant.check(by, PERMISSION, alias)
    text = warrant.reason(reason, "why this may be taken up again")
    kind, known = check(scope, name)
    with committing("lift", alias):
        lifted = store.lift(kind, known, by=identify.label(by), reason=text, seen=seen, using=alias)
        if lifted is None:
            return Held(Answer.ALREADY, None)
        transaction.on_commit(partial(_hint, alias), using=alias)
    return Held(Answer.ACCEPTED, lifted)


def holds(*, using: str | None = None) -> list[Row]:
    """What is held now, the oldest first."""
    return store.opened(identify.alias(using))


def of(workflow: Workflow, using: str) -> list[Row]:
    """The holds that keep a run from being taken up, or would: at its node, as far as this process has its flow."""
    return store.of(workflow.pk, using)


def ready(row: Row, using: str) -> int:
    """How many ready runs a hold keeps from being taken up, counted up to `MOST`."""
    return store.ready(row.id, MOST, using)


def said(rows: Iterable[Row]) -> str:
    """Holds in words, for the description of a run."""
    return "; ".join(
        f"{one.scope} {one.name}".strip()
        + f" is held since {one.since:%Y-%m-%d %H:%M}"
        + (f" by {one.by}" if one.by else "")
        + f": {one.reason}"
        for one in rows
    )


def _hint(using: str) -> None:
    for queue in tick.ready_queues(using):
        hinting.hint_ready(tick.ready(queue, HINTED, using), using)


def _is_known(scope: Scope, name: str, using: str) -> None:
    """A name that nobody knows would hold nothing, and who is in a hurry would not see it. Keys and tenants are the application's."""
    if scope is Scope.FLOW and not registry.known().versions(name):
        alive = Worker.objects.using(using).filter(status=WorkerStatus.ALIVE, lease_until__gt=Now())
        loaded = {one.rpartition("@")[0] for found in alive.values_list("definitions", flat=True) for one in found}
        if name not in loaded:
            raise UnknownFlow(name, sorted(loaded | {known for known, _ in registry.known()}))
    if scope is Scope.DEPENDENCY and name not in registry.declared(Dependency):
        rows = DependencyRow.objects.using(using)
        if not rows.filter(pk=name).exists():
            raise UnknownDependency(name, [*rows.values_list("name", flat=True), *registry.declared(Dependency)])
