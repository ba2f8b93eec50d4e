"""The measures once more, from the record as it lies there: every run by itself, every cut by itself, hour by hour. Slow, and written apart:
it shares no table, no statement and no helper with what it checks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from flows import registry
from flows.core.nodes import Decision
from flows.models import Attempt, Latency, Measure, Transition, Verdict, Wait, Workflow
from flows.store import measures as store

US = timedelta(microseconds=1)
ONE_HOUR = timedelta(hours=1)

STATUSES = {"runnable": "queued", "paused": "paused", "reconciling": "reconciliation", "cancelling": "cancelling"}
WAITS = {
    "timer": "timer", "retry_window": "retry delay", "event": "external job", "approval": "human", "ask": "human",
    "tool_approval": "human", "human": "human", "reconciliation": "reconciliation", "external_job": "external job",
    "resource": "capacity", "dependency_health": "capacity", "children": "children",
}  # fmt: skip
OVER = {"complete", "failed", "cancelled", "superseded"}
BY_HAND = {"resume", "migrate", "pin", "policy"}
COLUMNS = (
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 8 * 3600, 86400, 3 * 86400, 7 * 86400, float("inf"),
)  # fmt: skip

Spent = dict[tuple[datetime, str, int, str], tuple[int, int]]
Took = dict[tuple[datetime, str, int, str, float], tuple[int, int]]


@dataclass
class Cut:
    """One stretch of a run's life."""

    status: str
    node: str
    outcome: str
    since: datetime
    until: datetime
    kind: str | None = None


@dataclass
class Life:
    """One run, as it is recorded."""

    run: Workflow
    log: list[Transition] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)

    def cuts(self, end: datetime) -> Iterator[Cut]:
        """Each from one row to the next, the last one until `end`."""
        for number, row in enumerate(self.log):
            until = self.log[number + 1].at if number + 1 < len(self.log) else max(end, row.at)
            if row.to_status not in OVER:
                cut = Cut(row.to_status, row.to_node, row.outcome, row.at, until)
                cut.kind = self.open_in(cut) if row.to_status == "waiting" else None
                yield cut

    def open_in(self, cut: Cut) -> str | None:
        """The kind of the wait that was open in the middle of it."""
        middle = cut.since + (cut.until - cut.since) / 2
        found = [one for one in self.waits if one.opened_at <= middle and (one.closed_at is None or one.closed_at > middle)]
        return found[-1].kind if found else None

    def bucket(self, cut: Cut) -> str:
        """What it counts as."""
        if cut.status == "running":
            return of_node(self.run, cut.node)
        if cut.status == "waiting":
            if cut.kind is not None:
                return WAITS[cut.kind]
            return "reconciliation" if cut.outcome == "RECONCILIATION_REQUIRED" else "human"
        return STATUSES[cut.status]


def of_node(run: Workflow, name: str) -> str:
    """Whether time at that node is spent thinking, checking, or with other work."""
    node = registry.node(run.flow_name, run.flow_version, name)
    if isinstance(node, Decision):
        return "reasoning"
    return "verification" if getattr(node, "verifies", None) else "computing"


def lives(using: str) -> list[Life]:
    """Every run of the record."""
    found = {run.pk: Life(run) for run in Workflow.objects.using(using)}
    for row in Transition.objects.using(using).order_by("workflow_id", "seq"):
        found[row.workflow_id].log.append(row)
    for wait in Wait.objects.using(using).order_by("id"):
        found[wait.workflow_id].waits.append(wait)
    return list(found.values())


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def spent(start: datetime, end: datetime, using: str) -> Spent:
    """(hour, flow, version, bucket) → microseconds and runs."""
    amount: dict[Any, int] = defaultdict(int)
    runs: dict[Any, set[Any]] = defaultdict(set)
    for life in lives(using):
        for cut in life.cuts(end):
            since, until = max(cut.since, start), min(cut.until, end)
            while since < until:
                stop = min(hour_of(since) + ONE_HOUR, until)
                place = (hour_of(since), life.run.flow_name, life.run.flow_version, life.bucket(cut))
                amount[place] += (stop - since) // US
                runs[place].add(life.run.pk)
                since = stop
    return {place: (amount[place], len(runs[place])) for place in amount}


def happenings(life: Life, using: str) -> Iterator[tuple[str, datetime, timedelta]]:
    """(what, when, how long it took)."""
    none = timedelta(0)
    cuts = {cut.since: cut for cut in life.cuts(life.log[-1].at)}
    for number, row in enumerate(life.log):
        before = life.log[number - 1] if number else None
        if before is None:
            yield "started", row.at, none
            continue
        if before.to_status in OVER:
            continue  # its values were erased
        cut = cuts[before.at]
        if row.from_status == "waiting" and cut.kind:
            yield f"wait:{cut.kind}", row.at, row.at - before.at
        if row.trigger == "claim":
            woken = (
                cuts[life.log[number - 2].at].kind if before.from_status == "waiting" and before.trigger not in BY_HAND else None
            )
            yield (f"wake:{woken}" if woken else "queue"), row.at, row.at - before.at
        if row.to_status in OVER:
            yield f"ended:{row.outcome}", row.at, row.at - life.log[0].at
    for tried in Attempt.objects.using(using).filter(workflow_id=life.run.pk):
        yield f"attempt:{tried.outcome}", tried.ended_at, tried.ended_at - (tried.started_at or tried.ended_at)
        if tried.number == 1:
            yield "visit", tried.ended_at, none
    for verdict in Verdict.objects.using(using).filter(workflow_id=life.run.pk):
        yield f"verdict:{verdict.verdict}", verdict.at, none


def took(start: datetime, end: datetime, using: str) -> Took:
    """(hour, flow, version, what, column) → how many, and microseconds."""
    found: dict[Any, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for life in lives(using):
        for what, at, span in happenings(life, using):
            if not start <= at < end:
                continue
            length = max(span, timedelta(0))
            column = min(one for one in COLUMNS if length.total_seconds() <= one)
            place = (hour_of(at), life.run.flow_name, life.run.flow_version, what, column)
            count, amount = found[place]
            found[place] = (count + 1, amount + length // US)
    return dict(found)


def computed(start: datetime, end: datetime, using: str) -> tuple[Spent, Took]:
    """What the statements say, in the same form."""
    return as_spent(store.spent(start, end, using)), as_took(store.took(start, end, [], using))


def stored(using: str) -> tuple[Spent, Took]:
    """What the roll-up has written, in the same form."""
    return as_spent(Measure.objects.using(using)), as_took(Latency.objects.using(using).exclude(what__startswith="breach:"))


def as_spent(rows: Any) -> Spent:
    return {(one.hour, one.flow, one.version, one.bucket): (int(one.seconds * 10**6), one.runs) for one in rows}


def as_took(rows: Any) -> Took:
    return {(one.hour, one.flow, one.version, one.what, one.le): (one.count, int(one.seconds * 10**6)) for one in rows}


def apart(one: tuple[Spent, Took], other: tuple[Spent, Took]) -> list[str]:
    """Where two of them differ."""
    places = [(mine, place) for mine, whose in enumerate(one) for place in {*whose, *other[mine]}]
    return [
        f"{place}: {one[mine].get(place)}, by hand {other[mine].get(place)}"  # type: ignore[call-overload]
        for mine, place in sorted(places, key=str)
        if one[mine].get(place) != other[mine].get(place)  # type: ignore[call-overload]
    ]


def assert_measured(using: str) -> int:
    """The measures of all that is on record are what is counted here by hand; how many cuts that were."""
    from flows.services import measures

    measures.know_nodes(using)
    everything = lives(using)
    start = hour_of(min(life.log[0].at for life in everything))
    end = store.state(using)[2]
    differences = apart(computed(start, end, using), (spent(start, end, using), took(start, end, using)))
    assert not differences, "\n".join(differences)
    return sum(len(life.log) - 1 for life in everything)
