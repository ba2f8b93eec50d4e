"""A flow with effects, its provider, which writes down what it was told to do and never minds being told twice, and the story of a run.

Every call to the provider is a point at which the process may be ended, before and after, or its answer cut off (tests/support/crash.py).
"""

from __future__ import annotations

from typing import Any

import flows
from flows import COMPLETE, ESCALATE, Activity, Commits, Deadline, Effect, End, Flow, Servicing, Wait
from flows.core.effects import DidNotHappen, Happened
from flows.core.protocol import TERMINAL
from flows.models import Wait as WaitRow
from flows.models import Workflow
from flows.store import sql
from flows.testing import Clock, LocalWorker
from tests.support.chaosapp import journal

CALL, ROUNDS = "call", 40


class NotToBeEnded(Exception):
    """The run needs a person, or goes round for ever."""


# ---------------------------------------------------------------- the provider


def tell(folder: str, operation: str, attempt: str, *, knows: bool = False) -> dict[str, str]:
    """Have something done. `knows`: this one takes the same operation id twice for once; all others do it again."""
    point("before")
    journal.write(folder, journal.CALLED, operation, attempt)
    if not knows or journal.once(folder, operation):
        journal.write(folder, journal.DONE, operation, attempt)
    point("after")
    return {"receipt": operation}


def point(when: str) -> None:
    if sql.seam is not None:
        sql.seam(when, CALL)


def ask(operation: Any) -> Any:
    """What the provider's own journal says."""
    done = {line["operation"] for line in journal.read(operation.input["folder"], journal.DONE)}
    return Happened({"receipt": operation.id}, external_id="r-1") if operation.id in done else DidNotHappen()


def undo(operation: Any) -> Any:
    return tell(operation.input["folder"], operation.id, operation.headers["Outlast-Attempt"])


MITIGATED = Servicing(undo, reconcile=ask)


# ---------------------------------------------------------------- the flow


def book(attempt: Any) -> dict[str, Any]:
    """Two effects: a seat, which is asked about, and a meal, which may be ordered twice."""
    receipts = {}
    for name in ("seat", "meal"):
        with attempt.effect(name, request={"what": name}) as op:
            receipts[name] = op.call(tell, attempt.input["folder"], op.id, attempt.id, knows=name == "meal")
    return receipts


def hold(attempt: Any) -> dict[str, str]:
    """The cabin. One kind of run is cancelled while its call is under way."""
    receipt = tell(attempt.input["folder"], attempt.operation_id, attempt.id)
    if attempt.input["end"] == "cancelled in flight":
        flows.cancel(attempt.workflow_id, reason="while the call is under way")
    return receipt


def sail(attempt: Any) -> dict[str, str]:
    return tell(attempt.input["folder"], attempt.operation_id, attempt.id)


class Voyage(Flow):
    """Named effects, an effect that begins a commitment, a wait, and one effect more."""

    class Meta:
        name = "chaos-voyage"

    book = Activity(
        book, effects={"seat": Effect(reconcile=ask, compensate=MITIGATED), "meal": Effect(idempotent=True)}, then="hold"
    )
    hold = Activity(
        hold,
        effect=Effect(reconcile=ask, compensate=MITIGATED),
        commits=Commits(
            "cabin",
            release=MITIGATED,
            reference=lambda result: result["receipt"],
            deadline=Deadline(days=300, then=ESCALATE),
        ),
        then="go",
    )
    go = Wait("chaos.sail", key=lambda state: str(state.key), deadline=Deadline(days=300, then=ESCALATE), then="sail")
    sail = Activity(sail, effect=Effect(reconcile=ask), then="done")
    done = End(COMPLETE, result=lambda state: state.results["sail"])


# ---------------------------------------------------------------- the story


def voyage(folder: str, key: str, end: str) -> None:
    """One run, to that end: "complete", "cancelled" while it waits, or "cancelled in flight"."""
    from tests.support.chaosapp.stories import taking_over

    with taking_over() as worker:
        run = Voyage.start({"folder": folder, "end": end}, key=key)
        carry_on(worker, run.id, key, cancelled=end != "complete")


def carry_on(worker: LocalWorker, workflow: Any, key: str, *, cancelled: bool) -> None:
    """Turns of both kinds, until the run has ended; at its wait the world tells it to sail, or cancels it. Twice is once."""
    for _ in range(ROUNDS):
        worker.run()
        worker.tick()
        row = Workflow.objects.get(pk=workflow)
        if row.status in TERMINAL:
            return
        if row.outcome not in ("", "WAITING", "RECONCILIATION_REQUIRED"):
            raise NotToBeEnded(f"{row.outcome} {row.error_code} at {row.node}")
        if not WaitRow.objects.filter(workflow_id=workflow, status="open", kind="event").exists():
            Clock("default").move(minutes=1)  # the pause before what did not happen is tried again
            continue
        if cancelled:
            flows.cancel(workflow, reason="nobody wants to sail")
        else:
            flows.signal(f"{key}/sail", "chaos.sail", key=key)
    raise NotToBeEnded(f"{row.status} at {row.node}, owed {row.owed}, after {ROUNDS} rounds")
