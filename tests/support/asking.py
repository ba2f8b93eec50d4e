"""Flows whose effect only asking again can settle, calls of fenced attempts, and mitigations that fail: ready for a race, and brought home.

asking ──► asked: window (its next attempt waits for its time) ──► opened (that attempt is claimed, its effect not begun)
fenced: cancelled in flight; nobody asks before the call is over, or its process gone
failing: a compensation or a release is being called, and will fail for certain ──► failed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model

import flows
from flows import COMPLETE, ESCALATE, FAILED, Activity, Deadline, End, Flow, Retry, Servicing, Wait, seconds
from flows.core.effects import Effect, OperationStatus, Settle
from flows.core.ids import new_id
from flows.core.protocol import TERMINAL
from flows.errors import PolicyDenied
from flows.models import Operation, Timer, Worker
from flows.services import obligations, servicing, sweeps
from flows.services.owned import Owned
from flows.services.proceed import Progress
from flows.store import looks
from flows.store.operations import Row
from flows.testing import LocalWorker
from tests import factories
from tests.support import owing
from tests.support.obligations import faults
from tests.support.owing import AT_ONCE, EVIDENCE, USING, Case

#: (operation, number of the attempt) of each call of the effect that was made.
sent: list[tuple[str, int]] = []

ONCE = Retry(max_attempts=1, initial=seconds(0), maximum=seconds(0), jitter=0)
HOUR = Deadline(hours=1, then="gave_up")


def sending(kind: str, retry: Retry, effect: Effect | None = None) -> type[Flow]:
    """One effect, an hour for the flow."""
    meta = type("Meta", (), {"name": f"t-sending-{kind}", "deadline": HOUR})
    nodes = {
        "book": Activity(
            factories.work, effect=effect or Effect(request=owing.request, idempotent=True), retry=retry, then="done"
        ),
        "gave_up": End(FAILED),
        "done": End(COMPLETE),
    }
    return type(f"Sending_{kind}", (Flow,), {"Meta": meta, "__doc__": "One effect.", **nodes})


SendingAtOnce = sending("now", AT_ONCE)
SendingLater = sending("later", Retry(max_attempts=5, initial=seconds(60), maximum=seconds(60), jitter=0))
SendingOnce = sending("once", ONCE)
#: Nobody can be asked about it but a person.
Telling = sending("told", AT_ONCE, Effect(request=owing.request))


class Undoing(Flow):
    """Its compensation and the release of its window are tried once; then a person says what shall be done."""

    class Meta:
        name = "t-undoing-once"

    book = Activity(
        factories.work,
        effect=Effect(request=owing.request, reconcile=owing.reconcile, compensate=Servicing(owing.undo, probes=ONCE)),
        commits=flows.Commits("window", release=Servicing(owing.release, probes=ONCE)),
        then="go",
    )
    go = Wait("t.owing", key=factories.key_of, deadline=Deadline(days=9, then=ESCALATE), then="done")
    done = End(COMPLETE)


@dataclass
class Asked(Case):
    """A case, and the look that somebody has taken at its operation, which was `seen` so."""

    looker: LocalWorker | None = None
    taken: tuple[str, int] | None = None
    seen: Row | None = None
    busy: bool = False

    def fly(self, *, made: bool = True) -> Any:
        call = super().fly(made=made)
        if not call.done:
            sent.append((call.id, self.number))
        return call

    @property
    def number(self) -> int:
        return self.owned.state.activity.number if self.owned.state.activity else 0

    @property
    def now(self) -> Operation:
        return Operation.objects.get(pk=self.operation)

    def answer(self) -> None:
        """What follows from that look."""
        assert self.looker is not None
        assert self.taken is not None
        owing.answer_look(self.looker, self.taken)

    def take(self) -> bool:
        """A worker takes what is due, and is busy with it until `bring_home`."""
        looker = factories.another_worker()
        taken = owing.take_look(looker)
        if taken is not None:
            self.looker, self.taken, self.busy = looker, taken, True
        return self.busy

    def have_asked_again(self) -> None:
        """Its last line: the look has read, was frozen, and says now that only asking again can tell."""
        assert self.seen is not None
        servicing._apply(self.seen, self.seen.looks, Settle(OperationStatus.PLANNED), USING)

    def over(self) -> bool:
        """Its fenced attempt comes back, and does not know either."""
        return obligations.calls_over([self.operation], USING)

    def gone(self) -> bool:
        """The clock looks for calls whose process is gone."""
        return sweeps.callers_gone(USING)

    def put_back_look(self) -> list[str]:
        """Who looks is taken for dead, and is not."""
        assert self.looker is not None
        Worker.objects.filter(pk=self.looker.incarnation).update(status="dead")
        return looks.put_back(0.0, USING)

    def put_back(self) -> int:
        """Its owner is taken for dead, and is not."""
        self.kill_owner()
        return sweeps.put_back([self.run.id], USING)

    def hurry(self, kind: str) -> Any:
        """The time of a timer has come, and the sweep says so."""
        Timer.objects.filter(workflow_id=self.run.id, kind=kind).update(due_at="2020-01-01T00:00Z")
        return sweeps.fire_timers(USING)


def work(attempt: Any) -> Any:
    """The call, made by a worker."""
    sent.append((attempt.operation_id, attempt.number))
    return owing.outside.setdefault(attempt.operation_id, EVIDENCE)


# ---------------------------------------------------------------- ready for a race


def flying(worker: LocalWorker, flow: type[Flow]) -> Asked:
    """In flight, and made; its owner is not `worker`."""
    case = opened_by(factories.another_worker(), flow.start({"key": str(new_id())}))
    case.fly()
    return case


def opened_by(worker: LocalWorker, run: Any) -> Asked:
    owned: Owned = factories.take_one(worker)
    assert factories.enter(owned) is Progress.RUN
    return Asked(worker, run, owned)


def asking(worker: LocalWorker, flow: type[Flow] = SendingAtOnce) -> Asked:
    """In doubt, and somebody is looking: the answer will be to ask again, or a person."""
    case = flying(worker, flow)
    assert case.lose_answer() is Progress.LEFT
    return looking(case)


def looking(case: Asked) -> Asked:
    case.looker = factories.another_worker()
    case.taken = owing.take_look(case.looker)
    assert case.taken is not None
    case.seen = owing.operation(case.taken[0])
    return case


def window(worker: LocalWorker) -> Asked:
    """To be asked for again, in a minute."""
    case = asking(worker, SendingLater)
    case.answer()
    assert (factories.row(case.run).status, case.now.again) == ("waiting", True)
    return case


def telling(worker: LocalWorker) -> Asked:
    """Asked for as often as may be: a person is asked."""
    case = asking(worker, SendingOnce)
    case.answer()
    assert (factories.row(case.run).outcome, case.now.again) == ("HUMAN_REQUIRED", False)
    return case


def opened(worker: LocalWorker, flow: type[Flow] = SendingAtOnce) -> Asked:
    """To be asked for again, by an attempt that is claimed and has not begun its effect."""
    case = asking(worker, flow)
    case.answer()
    owned = opened_by(factories.another_worker(), case.run)
    owned.looker, owned.taken = case.looker, case.taken
    return owned


def fenced(worker: LocalWorker, flow: type[Flow] = owing.Owing) -> Asked:
    """Cancelled in flight, by a caller that is still at it."""
    case = flying(worker, flow)
    flows.cancel(case.run)
    assert case.now.flown_by is not None
    return case


def orphaned(worker: LocalWorker, flow: type[Flow] = owing.Owing) -> Asked:
    """The same, and its process is gone."""
    case = fenced(worker, flow)
    case.kill_owner()
    return case


def dying(worker: LocalWorker) -> Asked:
    """In flight, and its process is gone; nobody has noticed."""
    case = flying(worker, owing.Owing)
    case.kill_owner()
    return case


def failing(worker: LocalWorker, what: str, flow: type[Flow] = Undoing) -> Asked:
    """Somebody is at the mitigation, whose call will fail for certain: of the effect ("compensate"), or of the window ("release")."""
    case = flying(worker, flow)
    assert case.done() is Progress.LEFT
    flows.cancel(case.run)
    if what != "compensate":
        looking(case).answer()
    owing.faults.append(PolicyDenied())
    return looking(case)


def failed(worker: LocalWorker, what: str, flow: type[Flow] = Undoing) -> Asked:
    """It has failed."""
    case = failing(worker, what, flow)
    case.answer()
    assert Operation.objects.get(pk=case.taken[0]).status == "failed"
    return case


def due_again(worker: LocalWorker, what: str) -> Asked:
    """It has failed, and a person wants it tried again: whoever looks next makes the call."""
    case = failed(worker, what)
    assert case.taken is not None
    person = get_user_model().objects.create_superuser(str(new_id()))
    assert case.verdict("retry", person, case.taken[0]) == "accepted"
    return case


# ---------------------------------------------------------------- home


def bring_home(case: Asked, worker: LocalWorker, person: Any) -> str:
    """Let it end by itself: its owner comes back, its time comes, paused is resumed, and a person says what they see where one is asked."""
    factories.does["book"] = work
    if case.busy:
        case.answer()
    for _ in range(8):
        if factories.row(case.run).status == "running":
            case.done()
        case.hurry("retry")
        worker.tick()
        assert faults() == []
        case.over()
        worker.run()
        found = factories.row(case.run)
        if found.status in TERMINAL:
            return found.status
        if found.status == "paused" and not obligations.doubts(case.run.id, USING):
            flows.resume(case.run)
        for row in Operation.objects.filter(workflow_id=case.run.id, due_at=None, worker_id=None):
            if row.status == "uncertain" and not row.again:
                case.verdict("happened" if row.pk in owing.outside else "did_not_happen", person, row.pk)
            elif row.status == "failed" and row.kind != "effect":
                case.verdict("retry", person, row.pk)
    raise AssertionError(f"{found.status} {found.outcome} {found.error_code} at {found.node}, owed {found.owed}")


def forget() -> None:
    owing.forget()
    sent.clear()
