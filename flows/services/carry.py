"""What of a run goes over into a newer version of its definition, and what is left behind: the open activity, the open wait, its error.

activity   scheduled at a node of the same name, which still is one (and has that step): the same visit, the same operations
wait       the node of the same name would wait for exactly the same: it goes over with its deadline and whatever arrived
retry      the pause before the next attempt goes with its activity, as a wait for capacity does
           for a person: goes with the suspension that it stands for
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import UUID

from flows import registry
from flows.core.decide import DEFINITION_FAULT, VISITS_EXHAUSTED
from flows.core.definition import Definition
from flows.core.effects import OperationKind, OperationStatus
from flows.core.errors import CannotMigrate
from flows.core.moves import Park
from flows.core.nodes.activity import RETRY_WINDOW, Activity
from flows.core.nodes.base import Node
from flows.core.nodes.pipeline import Pipeline
from flows.core.protocol import CAPACITY, SUSPENDING, Outcome
from flows.core.state import State, WaitState
from flows.core.versions import Walked
from flows.models import Commitment, Wait, Workflow
from flows.models.commitment import LIVE as OWED
from flows.services.follow import timeout_of
from flows.services.operation import declared
from flows.services.owned import state_of, with_calendars
from flows.services.untouched import called
from flows.store import operations, parts
from flows.store.claim import Claimed
from flows.store.load import load, whole

#: Codes by which the engine knows how to go on at the node where it stood.
OF_NODE = frozenset({DEFINITION_FAULT, VISITS_EXHAUSTED})


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as it was read: the row as a claim returns it, its state, and what else the arrow is guarded by. `pause`: it was asked to."""

    row: Claimed
    state: State
    status: str
    outcome: str
    worker: UUID | None = None
    target: str = ""
    pause: bool = False


@dataclass(frozen=True, slots=True)
class Carried:
    """What goes over. `wait`: its id; `on_expiry`: that wait's policy in the new version. `code`: the error that still stands."""

    activity: bool
    wait: int | None
    on_expiry: str | None
    code: str | None
    timeout: float
    queue: str | None
    placement: str


def look(row_id: UUID, using: str) -> Seen:
    """Read a run that exists."""
    row = Claimed(*whole(row_id, using))
    found = Workflow.objects.using(using).values("status", "outcome", "worker_id", "target").get(pk=row_id)
    state = state_of(row, load([row_id], using)[row_id], using)
    return Seen(row, state, found["status"], found["outcome"], found["worker_id"], found["target"])


def carried(seen: Seen, target: Definition, walked: Walked, using: str) -> Carried:
    """What of the run goes over to this node of the new version.

    Raises:
        CannotMigrate: the node's own functions cannot say what it would wait for.
    """
    node = target.nodes[walked.node]
    seen = replace(seen, state=with_calendars(seen.state, target, using))
    same = walked.node == seen.row.node
    activity = same and _goes_on(seen.state, node)
    wait, on_expiry = _wait(seen, node, walked, using, same=same, activity=activity)
    code = seen.row.error_code if same or seen.outcome not in ("", Outcome.WAITING) else None
    if code == Outcome.WORKFLOW_MIGRATION_REQUIRED:  # answered
        code = None
    if code in OF_NODE and not same:
        code = f"MIGRATED:{code}"
    work = node if isinstance(node, Activity) else None
    step = seen.state.activity.step if activity and seen.state.activity is not None else ""
    return Carried(
        activity=activity,
        wait=wait,
        on_expiry=on_expiry,
        code=code,
        timeout=timeout_of(work, step) if activity and work is not None else 0.0,
        queue=work.queue if work is not None else None,
        placement=work.placement if work is not None else "",
    )


def _goes_on(state: State, node: Node) -> bool:
    """Whether the open activity is one of the node in the new version, too."""
    if state.activity is None or not isinstance(node, Activity):
        return False
    steps = {step.name for step in node.steps} if isinstance(node, Pipeline) else {""}
    return state.activity.step in steps


def _wait(seen: Seen, node: Node, walked: Walked, using: str, *, same: bool, activity: bool) -> tuple[int | None, str | None]:
    wait = seen.state.wait
    if wait is None:
        return None, None
    if wait.kind in SUSPENDING:
        suspended = seen.outcome not in ("", Outcome.WAITING, Outcome.WORKFLOW_MIGRATION_REQUIRED)
        return (wait.id, None) if suspended else (None, None)
    if wait.kind == RETRY_WINDOW or wait.kind in CAPACITY:
        return (wait.id, None) if activity else (None, None)
    park = _entered(seen.state, node, walked) if same and node.kind == wait.kind else None
    if park is None or not _same(wait, park, using):
        return None, None
    return wait.id, park.on_expiry


def _entered(state: State, node: Node, walked: Walked) -> Park | None:
    """The wait that the node would open if it were entered now."""
    at = replace(state, node=node.name, wait=None, results=MappingProxyType({**state.results, **walked.results}))
    try:
        move = called(node.waiting, at)
    except Exception as fault:
        raise CannotMigrate(f"a function of node {node.name!r} raised {type(fault).__name__}") from fault
    return move if isinstance(move, Park) else None


def _same(wait: WaitState, park: Park, using: str) -> bool:
    """Whether both wait for the same: the channel of an event, so many of the same events, or exactly the same question. A sleep's moment is
    kept.
    """
    row = Wait.objects.using(using).only("event_type", "key", "need").get(pk=wait.id)
    if (row.event_type, row.key) != (park.event_type, park.keys[0] if park.keys else ""):
        return False
    if park.parts or (row.need and not row.event_type and wait.kind == "event"):
        return row.need == park.need and tuple(part for part, _ in parts.of_wait(row.pk, using)) == park.parts
    plane = registry.wait_plane(wait.kind)
    return plane is None or plane.asks_the_same(using, wait.id, park)


def unserviced(workflow: UUID, target: Definition, using: str) -> list[str]:
    """Effects that could not be undone, and commitments that could not be released any more, by anything that is declared here."""
    rows = operations.of_workflow(workflow, using)
    effects = [
        row.id
        for row in rows
        if row.kind == OperationKind.EFFECT
        and row.compensable
        and row.status == OperationStatus.SUCCEEDED
        and declared(replace(row, kind=OperationKind.COMPENSATION, flow_version=target.version)) is None
    ]
    by_id = {row.id: row for row in rows}
    owed = Commitment.objects.using(using).filter(workflow_id=workflow, status__in=OWED, releasable=True).order_by("pk")
    held = [
        f"{one.kind} {one.name}"
        for one in owed
        if (row := by_id.get(one.operation_id or "")) is not None
        and declared(replace(row, kind=OperationKind.RELEASE, name=one.name, node=one.node, flow_version=target.version)) is None
    ]
    return effects + held
