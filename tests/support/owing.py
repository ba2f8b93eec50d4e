"""A flow that owes: an effect that can be asked about and undone, a window that is released; and each arrow about it by hand.

claimed ──► flying ──► doubtful ──► looked at
               └──► booked (waits, holds the window) ──► undoing, releasing ──► ended
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import flows
from flows import COMPLETE, ESCALATE, FAILED, Activity, Commits, Deadline, End, Flow, Retry, Servicing, Wait, seconds
from flows.core.effects import DidNotHappen, Effect, Happened, OperationStatus
from flows.core.errors import ActivityError, classify
from flows.core.ids import new_id
from flows.core.protocol import TERMINAL, AttemptOutcome
from flows.core.state import Completed, Failed
from flows.models import Commitment, Operation, Worker
from flows.services import attempting as attempts
from flows.services import obligations, servicing, settling
from flows.services.arrows import Ending
from flows.services.effects import Call, Effects
from flows.services.owned import Owned
from flows.services.proceed import Progress, proceed
from flows.services.resolve import resolve
from flows.services.start import Started
from flows.store import looks
from flows.store import operations as store
from flows.testing import LocalWorker
from tests import factories

USING = "default"
EVIDENCE = {"id": "w-1"}
REQUEST = {"book": 1}

#: What the outside has done, by operation id, and how often it was asked, and told to undo or to release.
outside: dict[str, Any] = {}
asked: list[str] = []
undone: list[str] = []
released: list[str] = []
#: What the next compensation or release raises instead of doing it, and what it raises when it has.
faults: list[Exception] = []
cuts: list[Exception] = []


def request(state: Any) -> Any:
    return REQUEST


def reconcile(operation: Any) -> Any:
    """The outside knows."""
    asked.append(operation.id)
    return Happened(outside[operation.id]) if operation.id in outside else DidNotHappen()


def undo(operation: Any) -> Any:
    if faults:
        raise faults.pop()
    undone.append(operation.id)
    outside[operation.id] = {"undone": operation.of.id}
    if cuts:
        raise cuts.pop()
    return outside[operation.id]


def release(operation: Any) -> Any:
    if faults:
        raise faults.pop()
    released.append(operation.id)
    outside[operation.id] = {"released": operation.reference}
    if cuts:
        raise cuts.pop()
    return outside[operation.id]


def does(state: Any) -> str:
    return str(state.event["payload"]["do"])


AT_ONCE = Retry(max_attempts=5, initial=seconds(0), maximum=seconds(0), jitter=0)
WINDOW = Commits(
    "window",
    release=Servicing(release, reconcile=reconcile, probes=AT_ONCE),
    reference=lambda result: result["id"],
    deadline=Deadline(hours=2, then=ESCALATE),
)


class Owing(Flow):
    """Books, waits, and uses the window or leaves it."""

    class Meta:
        name = "t-owing"

    book = Activity(
        factories.work,
        effect=Effect(request=request, reconcile=reconcile, compensate=Servicing(undo, reconcile=reconcile, probes=AT_ONCE)),
        commits=WINDOW,
        retry=AT_ONCE,
        then="go",
    )
    go = Wait(
        "t.owing",
        key=factories.key_of,
        read=does,
        choices={"use": "use", "leave": "done", "fail": "gave_up"},
        deadline=Deadline(days=9, then=ESCALATE),
    )
    use = Activity(factories.work, fulfils="window", then="done")
    done = End(COMPLETE)
    gave_up = End(FAILED)


class Charging(Flow):
    """One effect that can be asked about, and nothing else: whoever settles it ends the run."""

    class Meta:
        name = "t-charging"

    book = Activity(factories.work, effect=Effect(request=request, reconcile=reconcile), retry=AT_ONCE, then="done")
    done = End(COMPLETE)


@dataclass
class Case:
    """One run in the hands of a test. `worker` owns it; `call` is the effect that is in flight."""

    worker: LocalWorker
    run: Started
    owned: Owned
    begun: Effects = field(init=False)
    call: Call | None = None

    def __post_init__(self) -> None:
        self.begun = Effects(self.owned, self.worker.owns)

    @property
    def operation(self) -> str:
        return f"{self.run.id}/book/1"

    # ------------------------------------------------------------ the owner

    def fly(self, *, made: bool = True) -> Call:
        """In flight: after this the call may be made, and is if it is `made`."""
        self.call = self.begun.begin("", REQUEST)
        if made:
            outside[self.call.id] = EVIDENCE
        return self.call

    def done(self) -> Progress:
        """The call has returned: its arrow, or what came too late is recorded."""
        text = json.dumps(EVIDENCE)
        ending = Ending(AttemptOutcome.SUCCEEDED, result=text, settled=self.begun.at_return(self.call, text))
        progress = proceed(self.owned, Completed(EVIDENCE), factories.STAY, ending)
        if progress is Progress.LOST:
            attempts.keep_late(self.owned, ending)
        return progress

    def lose_answer(self) -> Progress:
        """The call has not returned: nobody knows."""
        failure = classify(ConnectionResetError())
        ending = Ending(AttemptOutcome.FAILED, code=failure.code, error_class=failure.classes[0])
        return proceed(self.owned, Failed(failure, doubtful=bool(self.begun.open)), factories.STAY, ending)

    def refused(self) -> Progress:
        """The call has failed, for certain."""
        outside.pop(self.operation, None)
        error = ActivityError("no")
        failure = classify(error)
        settled = self.begun.at_error(self.call, error, returned=False)
        ending = Ending(AttemptOutcome.FAILED, code=failure.code, error_class=failure.classes[0], settled=settled)
        progress = proceed(self.owned, Failed(failure), factories.STAY, ending)
        if progress is Progress.LOST:
            attempts.keep_late(self.owned, ending)
        return progress

    # ------------------------------------------------------------ others

    def late(self) -> bool:
        """Its old attempt says that it happened."""
        number = self.owned.state.activity.number if self.owned.state.activity else 1
        return settle(self.operation, self.run, OperationStatus.SUCCEEDED, source="attempt", late=number)

    def verdict(self, verdict: str, by: Any, operation: str | None = None) -> str:
        """A person says what became of it."""
        return resolve(operation or self.operation, verdict=verdict, by=by, reason="seen", evidence=EVIDENCE).code.value

    def kill_owner(self) -> None:
        Worker.objects.filter(pk=self.worker.incarnation).update(status="dead")


def settle(
    operation: str, run: Any, status: OperationStatus, *, source: str, look: int | None = None, late: int | None = None
) -> bool:
    """An answer, as the attempt or the probe gives it."""
    return settling.settle(
        operation,
        run.id,
        status=status,
        source=source,
        evidence=json.dumps(EVIDENCE) if status is OperationStatus.SUCCEEDED else None,
        looks=look,
        attempt=late if status is OperationStatus.FAILED else None,
        using=USING,
    )


def take_look(worker: LocalWorker) -> tuple[str, int] | None:
    """Take the next operation that is due, as a servicing turn does."""
    assert worker.incarnation is not None
    taken = looks.look(worker.incarnation, worker.pid, worker.flows, worker.versions, 1, USING)
    return taken[0] if taken else None


def answer_look(worker: LocalWorker, taken: tuple[str, int]) -> None:
    """Do what that look is for, as a servicing turn does."""
    servicing._look(worker, *taken, USING)


def service(worker: LocalWorker) -> int:
    return servicing.run_servicing(worker, USING)


# ---------------------------------------------------------------- ready for a race


def claimed(worker: LocalWorker, flow: type[Flow] = Owing) -> Case:
    """Its activity is open, its effect not begun."""
    run = flow.start({"key": str(new_id())})
    owned = factories.take_one(worker)
    assert owned.row.id == run.id
    assert factories.enter(owned) is Progress.RUN
    return Case(worker, run, owned)


def flying(worker: LocalWorker, flow: type[Flow] = Owing) -> Case:
    case = claimed(worker, flow)
    case.fly()
    return case


def doubtful(worker: LocalWorker, flow: type[Flow] = Owing, *, happened: bool = True) -> Case:
    case = flying(worker, flow)
    if not happened:
        outside.pop(case.operation)
    assert case.lose_answer() is Progress.LEFT
    return case


def booked(worker: LocalWorker) -> Case:
    """Waits for its event, and holds the window."""
    case = flying(worker)
    assert case.done() is Progress.LEFT
    assert factories.row(case.run).status == "waiting"
    return case


def hear(case: Case, what: str) -> None:
    key = factories.row(case.run).input["key"]
    flows.signal(str(new_id()), "t.owing", key=key, payload={"do": what})


def deciding(worker: LocalWorker, what: str) -> Case:
    """Its event has come and it is claimed: the next decision leads to that end (or to `use`)."""
    case = booked(worker)
    hear(case, what)
    case.owned = factories.take_one(worker)
    return case


def undoing(worker: LocalWorker) -> Case:
    """Cancelled: the compensation is due."""
    case = booked(worker)
    flows.cancel(case.run)
    return case


def releasing(worker: LocalWorker, what: str = "leave") -> Case:
    """On its way to a good end: the release is due."""
    case = deciding(worker, what)
    assert factories.enter(case.owned) is Progress.LEFT
    assert factories.row(case.run).status == "reconciling"
    return case


def bring_home(case: Case, worker: LocalWorker, person: Any = None) -> str:
    """Let everything end that can, cancel the rest; the status of its end. Whatever raced, nothing may be left over."""
    factories.does["book"] = lambda attempt: outside.setdefault(attempt.operation_id, EVIDENCE)
    for number in range(6):
        worker.tick()
        # Whoever made a call here has come back from it: no attempt of these tests runs on its own.
        obligations.calls_over(list(Operation.objects.filter(workflow_id=case.run.id).values_list("pk", flat=True)), worker.using)
        worker.run()
        found = factories.row(case.run)
        if found.status in TERMINAL:
            return found.status
        if number:
            flows.cancel(case.run)
        if person is not None:
            for row in Operation.objects.filter(workflow_id=case.run.id, due_at=None, worker_id=None, status="uncertain"):
                case.verdict("did_not_happen", person, row.pk)
    raise AssertionError(f"{found.status} {found.outcome} {found.error_code} at {found.node}, owed {found.owed}")


def statuses(run: Any) -> dict[str, str]:
    """Operations and commitments of a run, by short names."""
    found = {row.pk.partition("/")[2]: row.status for row in Operation.objects.filter(workflow_id=run.id)}
    held = Commitment.objects.filter(workflow_id=run.id)
    return found | {row.name: row.status for row in held}


def forget() -> None:
    outside.clear()
    asked.clear()
    undone.clear()
    released.clear()
    faults.clear()
    cuts.clear()


def operation(pk: str) -> store.Row:
    """An operation as it is recorded."""
    row = store.get(pk, USING)
    assert row is not None
    return row


__all__ = [
    "Case",
    "Charging",
    "Owing",
    "answer_look",
    "asked",
    "booked",
    "bring_home",
    "claimed",
    "cuts",
    "deciding",
    "doubtful",
    "faults",
    "flying",
    "forget",
    "hear",
    "operation",
    "outside",
    "released",
    "releasing",
    "service",
    "settle",
    "statuses",
    "take_look",
    "undoing",
    "undone",
]
