"""A state machine over everything that may happen to a run that owes: whatever the order, the debts are exact, and each thing is done once.

There is no model beside it: what must hold is in tests/support/obligations.py, and the outside keeps count of what it was told to do.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

import flows
from flows import CANCEL, RELEASE, Deadline, commitments
from flows.core.errors import LostOwnership
from flows.core.misuse import OutcomeUnknown
from flows.core.protocol import TERMINAL
from flows.models import Commitment, Operation, Workflow
from flows.services import sweeps
from flows.services.proceed import Progress
from flows.store import looks
from flows.store.sql import run as execute
from flows.testing import Clock
from tests import factories
from tests.support import owing
from tests.support import record as records
from tests.support.obligations import faults
from tests.support.owing import Case, Charging, Owing, outside

USING = "default"
DICE = st.integers(0, 7)
WHO = st.integers(0, 1)


class Impatient(Owing):
    """The same, and its deadlines take the window back after a while, and end it after days."""

    class Meta:
        name = "t-impatient"
        sla = {"hold": Deadline(hours=1, then=RELEASE), "all": Deadline(hours=100, then=CANCEL)}


class Debts(RuleBasedStateMachine):
    """One example: an empty record, two workers, and a few runs."""

    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        records.wipe()
        execute("midnight", "UPDATE outlast_test_clock SET shift = interval '0'", {}, USING)
        owing.forget()
        factories.forget()
        factories.does["book"] = self.book
        self.calls: Counter[str] = Counter()
        self.runs: dict[Any, Any] = {}
        self.cases: list[Case] = []
        self.looks: list[tuple[Any, tuple[str, int]]] = []
        self.workers = [factories.another_worker(), factories.another_worker()]
        self.ann = get_user_model().objects.create_superuser("ann")
        self.serial = 0

    def book(self, attempt: Any) -> Any:
        """The call, where a worker goes its way by itself."""
        self.call(attempt.operation_id)
        return owing.EVIDENCE

    def call(self, operation: str) -> None:
        self.calls[operation] += 1
        outside[operation] = owing.EVIDENCE

    def some(self, dice: int, *statuses: str) -> Any:
        """One of the runs (in one of these statuses), or None."""
        rows = Workflow.objects.filter(status__in=statuses) if statuses else Workflow.objects.exclude(status__in=list(TERMINAL))
        ids = list(rows.order_by("id").values_list("pk", flat=True))
        return self.runs[ids[dice % len(ids)]] if ids else None

    # ------------------------------------------------------------ its own way

    @initialize()
    def first(self) -> None:
        self.start(Owing)

    @precondition(lambda self: Workflow.objects.exclude(status__in=list(TERMINAL)).count() < 3)
    @rule(flow=st.sampled_from([Owing, Impatient, Charging]))
    def start(self, flow: type[flows.Flow]) -> None:
        self.serial += 1
        run = flow.start({"key": f"k{self.serial}"})
        self.runs[run.id] = run

    @rule(who=WHO, made=st.sampled_from([None, False, True, True, True]))
    def take(self, who: int, made: bool | None) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """Claimed; its effect is begun, or not yet, and the call made or not."""
        worker = self.workers[who]
        for owned in factories.take_up_to(worker, 1):
            if factories.enter(owned) is not Progress.RUN:
                continue
            case = Case(worker, self.runs[owned.row.id], owned)
            self.cases.append(case)
            if made is not None:
                self.fly(case, made=made)

    def fly(self, case: Case, *, made: bool) -> None:
        if case.owned.state.node != "book" or case.call is not None:
            return
        call = case.fly(made=False)
        if made and not call.done:
            self.call(call.id)

    @precondition(lambda self: bool(self.cases))
    @rule(dice=DICE, made=st.booleans())
    def begin(self, dice: int, made: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        case = self.cases[dice % len(self.cases)]
        try:
            self.fly(case, made=made)
        except LostOwnership:
            self.cases.remove(case)

    @precondition(lambda self: bool(self.cases))
    @rule(dice=DICE, how=st.sampled_from(["good", "good", "lost", "refused"]))
    def ends(self, dice: int, how: str) -> None:
        """An attempt ends, of an owner or of one who was fenced meanwhile; it says only what is true."""
        case = self.cases.pop(dice % len(self.cases))
        booking, known = case.owned.state.node == "book", case.call is not None and case.call.id in outside
        try:
            if how == "lost" or (booking and case.call is None):
                case.lose_answer()
            elif not booking or known:
                case.done()
            elif how == "refused":
                case.refused()
            else:
                case.lose_answer()
        except LostOwnership:
            pass

    @rule(dice=DICE, what=st.sampled_from(["use", "leave", "leave", "fail"]))
    def hears(self, dice: int, what: str) -> None:
        run = self.some(dice)
        if run is not None:
            self.serial += 1
            flows.signal(f"e{self.serial}", "t.owing", key=Workflow.objects.get(pk=run.id).input["key"], payload={"do": what})

    # ------------------------------------------------------------ people

    @rule(dice=DICE, verb=st.sampled_from(["cancel", "supersede", "pause", "resume", "resume"]))
    def verb(self, dice: int, verb: str) -> None:
        run = self.some(dice)
        if run is None:
            return
        self.serial += 1
        try:
            flows.supersede(run, goal=f"g{self.serial}") if verb == "supersede" else getattr(flows, verb)(run)
        except OutcomeUnknown:
            assert Operation.objects.filter(workflow_id=run.id, kind="effect", status__in=["in_flight", "uncertain"]).exists()

    @rule(dice=DICE, then=st.sampled_from(["retry", "give_up", "happened"]))
    def verdict(self, dice: int, then: str) -> None:
        """A person says the truth about what is in doubt; what failed is tried again, given up, or was done by hand."""
        found = list(Operation.objects.filter(status__in=["uncertain", "failed"]).order_by("pk"))
        if not found:
            return
        row = found[dice % len(found)]
        says = ("happened" if row.pk in outside else "did_not_happen") if row.status == "uncertain" else then
        if says == "happened" and row.kind != "effect":
            outside.setdefault(row.pk, {"by": "hand"})
        Case.verdict(self, says, self.ann, row.pk)  # type: ignore[arg-type]

    @rule(dice=DICE, how=st.sampled_from(["fulfil", "defer", "transfer"]))
    def ended_by_a_person(self, dice: int, how: str) -> None:
        held = list(Commitment.objects.filter(closed_at=None).order_by("pk"))
        if held:
            more = {"to": "them"} if how == "transfer" else {}
            getattr(commitments, how)(held[dice % len(held)], by=None, reason="so", **more)

    # ------------------------------------------------------------ the cleanup

    @rule(who=WHO)
    def look(self, who: int) -> None:
        taken = owing.take_look(self.workers[who])
        if taken is not None:
            self.looks.append((self.workers[who], taken))

    @precondition(lambda self: bool(self.looks))
    @rule(dice=DICE, trouble=st.sampled_from(["", "", "", "before", "after", "refused"]))
    def answer(self, dice: int, trouble: str) -> None:
        """The look is carried out, by its owner or by one who was taken for dead meanwhile."""
        worker, taken = self.looks.pop(dice % len(self.looks))
        if trouble:
            (owing.cuts if trouble == "after" else owing.faults).append(
                flows.errors.PolicyDenied() if trouble == "refused" else ConnectionResetError()
            )
        owing.answer_look(worker, taken)
        owing.faults.clear()
        owing.cuts.clear()

    @rule(who=WHO)
    def service(self, who: int) -> None:
        owing.service(self.workers[who])

    @rule(who=WHO)
    def dies(self, who: int) -> None:
        """Its work is put back; what it still says comes too late."""
        factories.lose(self.workers[who])
        looks.put_back(0.0, USING)
        self.workers[who] = factories.another_worker()

    @rule(dice=DICE)
    def over_time(self, dice: int) -> None:
        run = self.some(dice, "running")
        if run is not None:
            statement = "UPDATE outlast_activity SET timeout_at = 'epoch' WHERE workflow_id = %(id)s::uuid AND status = 'running'"
            execute("overdue", statement, {"id": run.id}, USING)
            sweeps.time_out(USING)

    @rule(hours=st.sampled_from([0, 0, 3, 240]))
    def time_passes(self, hours: int) -> None:
        self.clock.move(hours=hours)
        sweeps.run_tick(USING)

    # ------------------------------------------------------------ what must hold

    @invariant()
    def debts_are_exact_and_nobody_is_stuck(self) -> None:
        assert faults() == []

    @invariant()
    def each_thing_is_done_once(self) -> None:
        twice = {name: count for name, count in (self.calls + Counter(owing.undone + owing.released)).items() if count > 1}
        assert not twice

    def teardown(self) -> None:
        """Everything comes to an end, and what happened and was not wanted is undone."""
        try:
            for worker in self.workers:
                factories.lose(worker)
            looks.put_back(0.0, USING)
            last = factories.another_worker()
            for run in self.runs.values():
                self.bring_home(run, last)
            assert faults() == []
            assert records.astray() == []
            self.each_thing_is_done_once()
        finally:
            factories.forget()

    def bring_home(self, run: Any, worker: Any) -> None:
        for number in range(8):
            worker.tick()
            worker.run()
            row = Workflow.objects.get(pk=run.id)
            if row.status in TERMINAL:
                break
            if number:
                flows.cancel(run)
            for found in Operation.objects.filter(workflow_id=run.id, due_at=None, worker_id=None):
                if found.status == "uncertain" or (found.status == "failed" and found.kind != "effect"):
                    self.verdict_of(found)
        assert row.status in TERMINAL, f"{row.status} {row.outcome} {row.error_code}"
        effect = Operation.objects.filter(workflow_id=run.id, kind="effect", compensable=True).first()
        if row.status != "complete" and effect is not None and effect.pk in outside:
            given_up = Operation.objects.filter(of_id=effect.pk, status="abandoned").exists()
            assert given_up or effect.status == "compensated"

    def verdict_of(self, row: Operation) -> None:
        says = ("happened" if row.pk in outside else "did_not_happen") if row.status == "uncertain" else "retry"
        Case.verdict(self, says, self.ann, row.pk)  # type: ignore[arg-type]


@pytest.mark.req("A2", "A3", "B2", "B5", "J1")
def test_whatever_happens_the_debts_are_exact(clock: Clock) -> None:
    Debts.clock = clock
    run_state_machine_as_test(
        Debts,
        settings=settings(
            max_examples=30,
            stateful_step_count=50,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
