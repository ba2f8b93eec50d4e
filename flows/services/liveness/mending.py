"""Repairs: each an arrow that exists elsewhere, under its own guard. True: it hit; False: there was nothing to hit, or only a person can.

Called with the finding locked, in one transaction; what computes is never touched, and nothing of an activity runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core.liveness import Repair
from flows.core.protocol import TimerKind
from flows.dispatch import after_commit, hints_for, service_after_commit
from flows.models import Commitment, Workflow
from flows.services import commitments, control, migrate, obligations, redelivering, sweeps
from flows.services.children import counting
from flows.services.liveness import searches
from flows.services.operation import can_be_asked
from flows.services.schedules import planning
from flows.store import budgets, fans, locks, looks, operations, slots, tick
from flows.store import obligations as standings
from flows.store.findings import Open
from flows.store.orphans import mending as store

UNASKED = "NOBODY_ASKED"


class NotHere(Exception):
    """This process does not know the flow: one that does mends it, and this is no try."""


@dataclass(frozen=True, slots=True)
class Order:
    """A repair of a finding: by whom, and why; nobody: the scan."""

    finding: Open
    by: Any
    reason: str
    using: str

    @property
    def facts(self) -> Any:
        return self.finding.facts

    @property
    def workflow(self) -> UUID:
        assert self.finding.workflow is not None
        return self.finding.workflow

    def hold(self) -> bool:
        """Lock its run, if nobody holds it."""
        return bool(locks.free_workflows([self.workflow], self.using))


def put_back(order: Order) -> bool:
    """As the sweep does when a worker dies."""
    sweeps.bury(order.using)
    return sweeps.put_back([order.workflow], order.using) > 0


def hint(order: Order) -> bool:
    """A message to the queue; the claim decides who runs what."""
    rows = tick.ready(order.facts["queue"], 1, order.using)
    after_commit(hints_for(rows), order.using)
    return bool(rows)


def make_timer(order: Order) -> bool:
    """The timer again, at its moment on record, with its policy."""
    kind, using = order.facts["timer"], order.using
    if not order.hold():
        return False
    if kind == TimerKind.COMMITMENT_DEADLINE:
        row = Commitment.objects.using(using).select_related("workflow").get(pk=order.facts["commitment"])
        if registry.definition(row.workflow.flow_name, row.workflow.flow_version) is None:
            raise NotHere
        declared = commitments.declared(row)
        word = declared.deadline.word if declared is not None and declared.deadline is not None else ""
        return bool(word) and store.timer_of_commitment(row.pk, word, using) is not None
    if kind == TimerKind.WORKFLOW_DEADLINE:
        run = Workflow.objects.using(using).only("flow_name", "flow_version").get(pk=order.workflow)
        definition = registry.definition(run.flow_name, run.flow_version)
        if definition is None:
            raise NotHere
        deadline = definition.deadlines.get((kind, ""))
        return deadline is not None and store.timer_of_run(order.workflow, deadline.word, using) is not None
    anyway = kind != TimerKind.SLEEP or order.by is not None
    return store.timer_of_wait(order.facts["wait"], kind, using, anyway=anyway) is not None


def wake(order: Order) -> bool:
    """Give it the event that is in the inbox; wake it for the answer that it has."""
    event = order.facts.get("event")
    if event is not None:
        reason = order.reason or "its event was in the inbox, and was not given to it"
        found = redelivering.redeliver(int(event), by=order.by, reason=reason, using=order.using)
        return order.workflow in found.woken
    if not order.hold():
        return False
    ready = store.wake(order.workflow, conf.PRIORITY_SECONDS, order.using)
    if ready is not None:
        after_commit(hints_for([ready]), order.using)
    return ready is not None


def release(order: Order) -> bool:
    """What a run holds that has ended is released, by the cleanup workers."""
    if order.facts["run"] not in ("complete", "failed", "cancelled", "superseded") or not order.hold():
        return False
    row = Commitment.objects.using(order.using).get(pk=order.facts["commitment"])
    if not row.releasable or row.status not in ("active", "breached") or row.operation_id is None:
        return False
    store.owe(row.pk, order.using)
    obligations.release_held(row.workflow_id, order.using, names=[row.name])
    return True


def ask(order: Order) -> bool:
    """Ask the provider again, or a person; a run that only waits for what is settled already goes on."""
    if not order.hold():
        return False
    named = order.facts.get("operation")
    if named is None:
        before = Workflow.objects.using(order.using).values_list("version", flat=True).get(pk=order.workflow)
        obligations.go_on(order.workflow, order.using)
        return before != Workflow.objects.using(order.using).values_list("version", flat=True).get(pk=order.workflow)
    row = operations.get(named, order.using)
    if row is None or row.status != "uncertain" or row.due_at is not None:
        return False
    if can_be_asked(row) and not row.again:
        if not looks.ask_again(row.id, row.looks, order.using):
            return False
        service_after_commit(order.using)
        return True
    if registry.definition(row.flow_name, row.flow_version) is None:
        raise NotHere
    return standings.ask_person(order.workflow, UNASKED, row.id, order.using, once=True)


def count(order: Order) -> bool:
    """As the clock does; a branch that its run's end was not written to is told first."""
    fan, number = int(order.facts["fan"]), int(order.facts["number"])
    store.end_branch(fan, number, order.using)
    return counting.settle(fan, order.using) and store.is_counted(fan, number, order.using)


def join(order: Order) -> bool:
    """A group that is complete is joined by its counters; one that nobody waits for is closed."""
    fan = int(order.facts["fan"])
    if order.facts["why"] != "nobody waits for it":
        return counting.settle(fan, order.using) and fans.is_over(fan, order.using)
    return order.hold() and fans.close(fan, order.using)


def free(order: Order) -> bool:
    """As the pump does where somebody waits."""
    limit = int(order.facts["limit"])
    slots.reclaim(limit, order.using)
    return store.is_free(limit, int(order.facts["number"]), order.using)


def plan(order: Order) -> bool:
    """As the clock does."""
    planning.plan_due(order.using)
    return store.is_planned(order.facts["schedule"], order.using)


def settle(order: Order) -> bool:
    """As of an attempt that was lost: nobody knows what it used, so all that was set aside counts."""
    reason = "nobody knows what was used, so all that was set aside counts"
    seq, attempt = order.facts["activity"], order.facts["attempt"]
    return order.hold() and budgets.settle(order.workflow, seq, attempt, order.using, known=False, reason=reason)


def redeliver(order: Order) -> bool:
    """To whoever waits for it now, or next."""
    return bool(redelivering.redeliver(int(order.facts["event"]), by=order.by, reason=order.reason, using=order.using))


def cancel(order: Order) -> bool:
    return bool(control.cancel(order.workflow, reason=order.reason, by=order.by, using=order.using))


def to_newer(order: Order) -> bool:
    return bool(migrate.migrate(order.workflow, reason=order.reason, by=order.by, using=order.using))


def fulfil(order: Order) -> bool:
    store.owe(order.facts["commitment"], order.using)
    return commitments.fulfil(order.facts["commitment"], by=order.by, reason=order.reason, using=order.using)


def defer(order: Order) -> bool:
    store.owe(order.facts["commitment"], order.using)
    return commitments.defer(order.facts["commitment"], by=order.by, reason=order.reason, using=order.using)


MENDS: dict[Repair, Callable[[Order], bool]] = {
    Repair.PUT_BACK: put_back,
    Repair.HINT: hint,
    Repair.MAKE_TIMER: make_timer,
    Repair.WAKE: wake,
    Repair.RELEASE: release,
    Repair.ASK: ask,
    Repair.COUNT: count,
    Repair.JOIN: join,
    Repair.FREE: free,
    Repair.PLAN: plan,
    Repair.SETTLE: settle,
    Repair.REDELIVER: redeliver,
    Repair.CANCEL: cancel,
    Repair.MIGRATE: to_newer,
    Repair.FULFIL: fulfil,
    Repair.DEFER: defer,
}


def mend(repair: Repair, finding: Open, using: str, *, by: Any = None, reason: str = "") -> bool:
    """Do what that repair is. What another app knows how to mend is registered with its search."""
    order = Order(finding, by, reason, using)
    search = searches.of(finding.kind)
    if search is not None and repair is Repair.WITHDRAW:
        return search.mend(using, finding.facts)
    return MENDS[repair](order)


__all__ = ["MENDS", "NotHere", "Order", "mend"]
