"""Count the ends of children, join their fan, and start the next ones: one short transaction, which locks first and acts in new statements.

    ended (by the child's own arrow) ──► counted ──► joined?  ── yes ─► the wait gets its evidence, the parent is ready   (`children`)
                                                        └────── no ──► the next ones are started
Guard: intent shared, parent locked with SKIP LOCKED, fan locked. A count that is passed over, because somebody holds the parent, is made up
for by whoever counts then, who looks again, or by the clock. It is made by the turn that has ended a child, and by the clock for whatever else
ends one.
A child that nobody waits for: its end is the event `workflow.ended`, recorded before it is counted, and under its own id: twice is once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from flows.conf import conf
from flows.core import joins, payload
from flows.core.errors import PayloadError
from flows.core.joins import Counters, OnCancel
from flows.core.protocol import IntentStatus, Status
from flows.services import events as inbox
from flows.services import obligations
from flows.services.apart import apart
from flows.services.children import feeding, leaving, stopping
from flows.services.hinting import hint_ready
from flows.store import branches, chains, events, locks
from flows.store import fans as store
from flows.store.fans import Locked
from flows.store.sql import committing, loads

logger = logging.getLogger("outlast.children")

#: The event that says that a run has ended for which its parent does not wait.
WORKFLOW_ENDED = "workflow.ended"
#: A parent in one of these starts children; a paused one, or one on its way to an end, does not.
STARTS = frozenset({Status.WAITING, Status.RUNNABLE, Status.RUNNING})


def after_commit(fan: int, using: str) -> None:
    """Start the first children of a fan right after the commit that opens it; if that fails, the clock does."""
    transaction.on_commit(lambda: settle(fan, using), using=using, robust=True)


def ended_under(parents: Sequence[UUID], using: str) -> None:
    """Children of these workflows have ended, perhaps: count them."""
    while found := store.uncounted_of(parents, using):
        settled = [settle(fan, using) for fan in found]
        if not any(settled):
            return


def settle(fan_id: int, using: str) -> bool:
    """Count, join, start what there is room for; False if somebody holds the parent, so that nothing was done."""
    head = store.head(fan_id, using)
    if head is None:
        return False
    if not head.awaited:
        _say_ended(fan_id, using)
    with committing("count children", using):
        intent = locks.intent(head.intent_id, using, shared=True)
        if not locks.free_workflows([head.workflow_id], using):
            return False
        fan = store.lock(fan_id, using)
        assert fan is not None
        counted, counters = store.count(fan, using)
        while _goes_on(fan, counters, intent, using):
            refused = feeding.feed(fan, head.intent_id, fan.concurrency - counters.running, using)
            if not refused:
                break
            again, counters = store.count(fan, using)
            counted += again
        if counted and fan.owing:
            store.paid(fan.workflow_id, counted, using)
            obligations.go_on(fan.workflow_id, using)
    return True


def _goes_on(fan: Locked, counters: Counters, intent: tuple[int, str] | None, using: str) -> bool:
    """Whether more of it is to be started; it is joined here, if that is what it came to."""
    left = not fan.awaited and fan.on_cancel == OnCancel.ABANDON  # to itself, whatever becomes of its parent
    lives = fan.now_epoch == fan.epoch and not fan.target and Status(fan.now_status) in {*STARTS, Status.PAUSED}
    if fan.status != "open" or not (lives or left):
        return False
    verdict = joins.joined(counters, fan.need, fan.tolerated)
    if verdict:
        _join(fan, counters, verdict, using)
        return False
    active = intent == (fan.intent_version, IntentStatus.ACTIVE.value)
    if left and not active:  # nobody wants it any more
        leaving.let_go(fan.id, fan.on_cancel, using)
    return active and counters.planned > 0 and counters.running < fan.concurrency and (left or fan.now_status in STARTS)


def _join(fan: Locked, counters: Counters, verdict: str, using: str) -> None:
    """Once: the fan is open, and it is locked."""
    if not fan.awaited:
        store.close(fan.id, using)
        return
    store.join(fan.id, using)
    leaves = verdict == joins.MET and fan.on_lose == "leave"
    if counters.running or counters.planned:
        stopping.stop(fan.id, using, running=not leaves)
        counters = Counters(
            counters.total, counters.running, counters.succeeded, counters.failed, counters.cancelled,
            counters.skipped + counters.planned,
        )  # fmt: skip
    reached = events.wake(
        [fan.wait_id],
        evidence(fan, counters, verdict, using),
        event=None,
        trigger="children",
        ref=str(fan.id),
        priority_seconds=conf.PRIORITY_SECONDS,
        using=using,
    )
    hint_ready([row[:4] for row in reached if row[4] == Status.WAITING], using)


def evidence(fan: Locked, counters: Counters, verdict: str, using: str) -> str:
    """What the wait gets: how it was joined, the counters, and how each branch ended. Items of a Map are too many: they are read by page.

    Results that are too large together are left out, and said to be.
    """
    counts = {name: getattr(counters, name) for name in ("total", "succeeded", "failed", "cancelled", "skipped")}
    said: dict[str, Any] = {"verdict": verdict, "counts": counts}
    if fan.kind == "map":
        return payload.encode(said, f"the join of {fan.node}")
    rows = branches.page(fan.id, 0, counters.total, using)
    said["branches"] = {row.name: told(row) for row in rows}
    try:
        return payload.encode(said, f"the join of {fan.node}", payload.MAX_RESULT_BYTES * 2)
    except PayloadError:
        for one in said["branches"].values():
            one["result"], one["left_out"] = None, True
        return payload.encode(said, f"the join of {fan.node}", payload.MAX_RESULT_BYTES * 2)


def told(row: branches.Row) -> dict[str, Any]:
    """How a branch ended, for its parent's author."""
    result = payload.decode(loads(row.result))
    return {"id": str(row.child), "status": row.status, "outcome": row.outcome, "code": row.error_code, "result": result}


def _say_ended(fan_id: int, using: str) -> None:
    """The end of a child for which nobody waits, as an event; a result that is too large for one is left out."""
    for row in branches.page(fan_id, 0, 1, using):
        if row.outcome:
            said = {**told(row), "status": joins.OF_OUTCOME.get(row.outcome, joins.FAILED)}
            name = f"{WORKFLOW_ENDED}:{row.child}"
            key = str(chains.first_of(row.child, using))  # its parent knows the one that it has started
            try:
                inbox.signal(name, WORKFLOW_ENDED, key=key, payload=said, using=using)
            except PayloadError:
                inbox.signal(name, WORKFLOW_ENDED, key=key, payload={**said, "result": None, "left_out": True}, using=using)


def due(using: str) -> None:
    """What the clock finds: children to cancel, and fans to count and to feed."""
    stopping.carry_out(using)
    for fan in store.due(conf.SWEEP_BATCH, using):
        with apart(f"the count of fan {fan}", using):
            settle(fan, using)
