"""What an operator or a program asks of a workflow (Q3): where it is, what it waits for, who can end that, what is legal next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Subquery

from flows import registry
from flows.core import fold, payload
from flows.core.deadlines import KINDS, kind_of
from flows.core.errors import PayloadError
from flows.core.protocol import MOVES, TERMINAL, Status, WaitStatus
from flows.core.stillness import Reason
from flows.models import (
    Activity,
    Attempt,
    Commitment,
    Intent,
    SessionLink,
    Timer,
    Transition,
    Wait,
    Workflow,
)
from flows.models import (
    Verdict as VerdictRow,
)
from flows.services import control, identify, releases, stillness, waits_shown, way_on
from flows.services.identify import get
from flows.services.waits_shown import WaitView
from flows.store import batch
from flows.store import releases as store

#: More than that nobody lists.
MAX_ROWS = 2**31 - 1

VERIFY_BATCH = 500

#: What `fold` reads of a transition.
LOG_FIELDS = ("seq", "from_status", "to_status", "from_node", "to_node", "outcome", "epoch", "intent_version", "policy_version")


@dataclass(frozen=True, slots=True)
class ReleaseView:
    """The behavioural release that a run is pinned to.

    Attributes:
        current: the one that is current for its flow. passed_over: the current one beside which a person let it keep its own.
        offered_by: live workers that offer its release. alert: it is ready, and nobody has offered its release for too long.
    """

    name: str
    current: str
    passed_over: str
    offered_by: list[str]
    alert: bool


@dataclass(frozen=True, slots=True)
class Description:
    """The five answers about one workflow, and its timeline.

    Attributes:
        ways_on: the steps (`flows.core.verdicts.Way`) behind `decision_needed`.
        why: why it is not moving, what matters most first; none of a run that has ended.
        seen: the state that is described, as `resume`, `pause`, `cancel` and `policies.adopt` take it.
    """

    id: UUID
    flow: str
    version: int
    key: str | None
    status: str
    outcome: str
    node: str
    error_code: str | None
    intent: dict[str, Any]
    accountable: str
    waits: list[WaitView]
    commitments: list[dict[str, Any]]
    deadlines: list[dict[str, Any]]
    legal_moves: list[str]
    next_nodes: list[tuple[str, str]]
    decision_needed: str
    ways_on: list[str] = field(default_factory=list)
    seen: str = ""
    timeline: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    result: Any = None
    started_at: datetime | None = None
    updated_at: datetime | None = None
    release: ReleaseView | None = None
    why: list[Reason] = field(default_factory=list)


def describe(workflow: Any, *, using: str | None = None) -> Description:
    """The answers of Q3 about a workflow.

    Raises:
        UnknownWorkflow: there is none.
    """
    alias = identify.alias(using)
    row = get(workflow, alias)
    found = state(row, alias)
    return replace(
        found,
        result=payload.decode(row.result),
        commitments=_commitments(row.pk, alias),
        deadlines=deadlines(row.pk, alias),
        timeline=timeline(row.pk, alias),
        attempts=attempts(row.pk, alias),
        verdicts=verdicts(row.pk, alias),
    )


def state(row: Workflow, using: str) -> Description:
    """The answers about a run whose row was just read, without its lists (commitments, deadlines, timeline …), which may be
    thousands, and without its result, which may not be to be opened here.
    """
    read = batch.read(
        using,
        waits=Wait.objects.filter(workflow_id=row.pk, status=WaitStatus.OPEN),
        intents=Intent.objects.filter(pk=row.intent_id),
        sessions=SessionLink.objects.filter(workflow_id=row.pk).order_by("pk"),
        **stillness.looks(row),
    )
    waits, intent = read["waits"], read.first("intents")
    node = registry.node(row.flow_name, row.flow_version, row.node)
    needed = way_on.needed(row, waits, using)
    views = [waits_shown.view(wait, row, needed.ways, using) for wait in waits]
    return Description(
        id=row.pk,
        flow=row.flow_name,
        version=row.flow_version,
        key=row.key,
        status=row.status,
        outcome=row.outcome,
        node=row.node,
        error_code=row.error_code,
        intent={"id": str(intent.pk), "goal": intent.goal, "version": intent.version, "status": intent.status},
        accountable=row.user_label,
        waits=views,
        commitments=[],
        deadlines=[],
        legal_moves=sorted(
            status.value for status in MOVES[Status(row.status)] if status != row.status or status is Status.RUNNING
        ),
        next_nodes=sorted(node.targets()) if node is not None and row.status not in TERMINAL else [],
        decision_needed=needed.says,
        ways_on=[way.value for way in needed.ways],
        seen=control.seen_of(row),
        sessions=[one.session for one in read["sessions"]],
        result=None,
        started_at=row.created_at,
        updated_at=row.updated_at,
        release=_release(row, using),
        why=stillness.of(row, read, views, needed),
    )


def list_workflows(
    *,
    flow: str | None = None,
    status: str | None = None,
    key: str | None = None,
    intent: Any = None,
    limit: int = 50,
    using: str | None = None,
) -> list[Workflow]:
    """Workflows, newest first, optionally of one flow, status, key or intent (or that of a run).

    Raises:
        PayloadError: something that is looked for is no text, or `limit` no number of rows. UnknownIntent: it can be none.
    """
    wanted = {"flow_name": flow, "status": status, "key": key}
    for what, given in {"flow=": flow, "status=": status, "key=": key}.items():
        if given is not None:
            payload.check_text(given, what)
    most: Any = limit
    if not isinstance(most, int) or not 0 <= most <= MAX_ROWS:
        raise PayloadError("limit=", f"is a whole number from 0 to {MAX_ROWS}, got {most!r:.60}")
    rows = Workflow.objects.using(identify.alias(using)).order_by("-id")
    if intent is not None:
        rows = rows.filter(intent_id=identify.intent_id(intent))
    return list(rows.filter(**{column: given for column, given in wanted.items() if given})[:limit])


def timeline(workflow_id: UUID, using: str) -> list[dict[str, Any]]:
    """The transitions of a workflow, oldest first."""
    return [dict(row) for row in Transition.objects.using(using).filter(workflow_id=workflow_id).order_by("seq").values()]


def attempts(workflow_id: UUID, using: str) -> list[dict[str, Any]]:
    """The ended attempts of a workflow, oldest first."""
    rows = Attempt.objects.using(using).filter(workflow_id=workflow_id).order_by("activity_seq", "number")
    fields = ("activity_seq", "number", "node", "outcome", "error_code", "error_class", "started_at", "ended_at")
    return [dict(row) for row in rows.values(*fields)]


def verdicts(workflow_id: UUID, using: str) -> list[dict[str, Any]]:
    """What the gate answered, oldest first."""
    fields = ("at", "node", "activity_seq", "attempt", "cause", "verdict", "reason", "checks")
    return [dict(row) for row in VerdictRow.objects.using(using).filter(workflow_id=workflow_id).order_by("pk").values(*fields)]


def verify(workflow: Any = None, *, using: str | None = None) -> Iterable[tuple[UUID, list[fold.Difference]]]:
    """Compare log and row of one workflow, or of all; yields (id, differences) of each, sound ones with an empty list.

    Workflows move meanwhile: what differs is read again, log and row in one statement, before it is called a difference.
    """
    alias = identify.alias(using)
    rows = Workflow.objects.using(alias).order_by("id")
    if workflow is not None:
        rows = rows.filter(pk=get(workflow, alias).pk)
    reading = rows.values("id", *fold.FIELDS).iterator(chunk_size=VERIFY_BATCH)
    while batch := list(islice(reading, VERIFY_BATCH)):
        logs: dict[UUID, list[dict[str, Any]]] = {row["id"]: [] for row in batch}
        log = Transition.objects.using(alias).filter(workflow_id__in=list(logs)).order_by("workflow_id", "seq")
        for entry in log.values("workflow_id", *LOG_FIELDS):
            logs[entry["workflow_id"]].append(entry)
        headless = set(_without_activity(list(logs), alias))
        for row in batch:
            found = row["id"] in headless or fold.compare(logs[row["id"]], row)
            yield row["id"], _differences(row["id"], alias) if found else []


def _differences(row_id: UUID, using: str) -> list[fold.Difference]:
    """What differs in one snapshot."""
    own = {f"row_{field}": F(f"workflow__{field}") for field in fold.FIELDS}
    log = list(Transition.objects.using(using).filter(workflow_id=row_id).order_by("seq").values(*LOG_FIELDS, **own))
    if not log:
        return fold.compare([], {}) if Workflow.objects.using(using).filter(pk=row_id).exists() else []
    found = fold.compare(log, {field: log[0][f"row_{field}"] for field in fold.FIELDS})
    return found + [fold.Difference("activity", "missing", "open") for _ in _without_activity([row_id], using)]


def _without_activity(ids: list[UUID], using: str) -> Iterable[UUID]:
    """Those whose open activity is not there: only a deletion behind the guards does that, and no claim takes such a row."""
    there = Activity.objects.filter(workflow_id=OuterRef("pk"), seq=OuterRef("active_seq"))
    rows = Workflow.objects.using(using).filter(pk__in=ids, active_seq__isnull=False)
    return rows.filter(~Exists(there)).values_list("pk", flat=True)


def deadlines(workflow_id: UUID, using: str) -> list[dict[str, Any]]:
    """The deadlines of the workflow, its SLAs, waits, commitments and freshness, by time: `status` says what became of each.

    pending: to come. fired: it has passed, and the next decision handles it (that of a wait: the log says how). handled. stale: it changed
    nothing any more.
    """
    of_wait = Subquery(Wait.objects.filter(pk=OuterRef("wait_id")).values("kind"))
    rows = (
        Timer.objects.using(using)
        .filter(workflow_id=workflow_id, kind__in=KINDS)
        .annotate(of_wait=of_wait)
        .order_by("due_at", "pk")
    )
    fields = ("name", "due_at", "status", "on_expiry", "fired_at")
    return [{"kind": kind_of(row.kind, row.of_wait).name, **{field: getattr(row, field) for field in fields}} for row in rows]


def _commitments(workflow_id: UUID, using: str) -> list[dict[str, Any]]:
    """What it owes, or owed, to somebody outside."""
    rows = Commitment.objects.using(using).filter(workflow_id=workflow_id).order_by("pk")
    fields = ("name", "kind", "reference", "status", "deadline_at", "reason")
    return [{field: getattr(row, field) for field in fields} for row in rows]


def _release(row: Workflow, using: str) -> ReleaseView | None:
    if not row.release:
        return None
    offered_by = releases.offering(row.release, using) if row.status not in TERMINAL else []
    told = row.alerted_at is not None and row.alerted_at >= row.updated_at
    return ReleaseView(
        name=row.release,
        current=store.current(row.flow_name, using),
        passed_over=row.passed_over or "",
        offered_by=offered_by,
        alert=row.status == Status.RUNNABLE and told and not offered_by,
    )
