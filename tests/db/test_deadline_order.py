"""Several deadlines at once, deadlines beside a refusal or a doubt, and the life of a freshness budget's timer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flows
from flows import (
    BREACH,
    CANCEL,
    COMPLETE,
    DEGRADE,
    ESCALATE,
    FAIL,
    HUMAN,
    RELEASE,
    Activity,
    Candidate,
    Commits,
    Deadline,
    Decision,
    Effect,
    End,
    Fresh,
    Gate,
    Servicing,
    Sleep,
    Verdict,
    Visits,
    Wait,
    hours,
)
from flows.core.effects import Unknown
from flows.errors import AmbiguousOutcome
from flows.models import Timer, Workflow
from flows.services import resolve
from flows.testing import Clock, LocalWorker
from tests.factories import called, calls, does, row, status, work
from tests.support import dated
from tests.support.dated import FAR, Declare, events, pass_time
from tests.support.obligations import faults

pytestmark = pytest.mark.req("B8", "L1")
#: The first declares its flow anew with other deadlines, the second edits the fingerprint of a run: a replay of these finds that.
STRAYS = {
    "test_of_two_other_ways_both_are_taken_one_after_the_other",
    "test_a_refusal_of_the_gate_keeps_no_deadline_from_ending_it",
}


@pytest.fixture(autouse=True)
def _afresh(worker: LocalWorker) -> Iterator[None]:
    dated.forget()
    yield
    assert faults() == []


def two(declare: Declare, first: Deadline, second: Deadline) -> Any:
    return declare(
        "t-two",
        meta={"deadline": first, "sla": {"answer": second}},
        hold=Activity(work, commits=Commits("window", release=Servicing(dated.release, idempotent=True)), then="ask"),
        ask=Wait("t.two", key="k", then="extra", deadline=FAR),
        extra=Activity(work, optional=True, then="done"),
        one=Activity(work, then="rest"),
        rest=Wait("t.rest", key="k", then="done", deadline=FAR),
        two=Activity(work, then="done"),
        done=End(COMPLETE),
    )


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("severe", "mild", "end", "did"),
    [
        (CANCEL, ESCALATE, "cancelled", []),
        (CANCEL, "two", "cancelled", []),
        (FAIL, HUMAN, "failed", []),
        (FAIL, RELEASE, "failed", []),
        (ESCALATE, "two", "HUMAN_REQUIRED", []),
        (ESCALATE, BREACH, "HUMAN_REQUIRED", []),
        ("one", RELEASE, "rest", ["one"]),
        ("one", DEGRADE, "rest", ["one"]),
    ],
    ids=str,
)
def test_of_two_that_pass_at_once_the_most_severe_goes_first(
    worker: LocalWorker, clock: Clock, declare: Declare, severe: Any, mild: Any, end: str, did: list[str], swapped: Any
) -> None:
    both = [Deadline(hours=2, then=severe), Deadline(hours=2, then=mild)]
    run = two(declare, *(reversed(both) if swapped else both)).start({})
    worker.run()
    pass_time(worker, clock, hours=3)
    pass_time(worker, clock, minutes=1)
    assert end in status(run)
    assert [name for name, _, _ in calls if name in ("one", "two")] == did
    assert len(events()) == 2, "each expiry is an event"
    assert dated.window() == ("released" if RELEASE in (severe, mild) or severe in (CANCEL, FAIL) else "active")
    if end == "HUMAN_REQUIRED" and mild == "two":
        flows.resume(run)
        worker.run()
        assert (status(run)[0], called("two")) == ("complete", 1), "the other is handled at the next decision"


def test_of_two_other_ways_both_are_taken_one_after_the_other(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """The first leads to a wait, in which nothing would ask about the second."""
    run = two(declare, Deadline(hours=2, then="one"), Deadline(hours=2, then="rest")).start({})
    worker.run()
    pass_time(worker, clock, hours=3)
    pass_time(worker, clock, minutes=1)
    assert {timer.status for timer in Timer.objects.filter(kind__in=("sla", "workflow_deadline"))} == {"handled"}
    assert status(run) == ("waiting", "WAITING", "rest")

    other = two(declare, Deadline(hours=2, then="rest"), Deadline(hours=2, then="two")).start({})
    worker.run()
    pass_time(worker, clock, hours=3)
    pass_time(worker, clock, minutes=1)
    assert (status(other)[0], called("two")) == ("complete", 1)
    assert len(events()) == 4, "looked at twice, it is still one event"


@pytest.mark.parametrize(
    ("then", "end"), [(CANCEL, "cancelled"), (FAIL, "failed"), (ESCALATE, "HUMAN_REQUIRED"), ("late", "POLICY")], ids=str
)
def test_a_refusal_of_the_gate_keeps_no_deadline_from_ending_it(
    worker: LocalWorker, clock: Clock, declare: Declare, then: Any, end: str
) -> None:
    """What the gate stopped may be ended, and people may be asked; it takes no other way."""
    run = declare(
        "t-refused",
        meta={"deadline": Deadline(hours=2, then=then)},
        ask=Wait("t.r", key="k", then="act", deadline=FAR),
        act=Activity(work, gate=Gate(authority="auth.nobody_has_it"), then="done"),
        **({"late": Activity(work, then="done")} if then == "late" else {}),
        done=End(COMPLETE),
    ).start({})
    worker.run()
    flows.signal("e1", "t.r", key="k")
    worker.run()
    assert status(run)[1] == "POLICY_BLOCKED"
    Workflow.objects.filter(pk=run.id).update(fingerprint="changed")  # and now the base checks refuse too
    pass_time(worker, clock, hours=3)
    if end == "POLICY":
        assert (status(run)[:2], called("late")) == (("waiting", "WORKFLOW_MIGRATION_REQUIRED"), 0)
    else:
        assert end in status(run)
    assert called("act") == 0


# ---------------------------------------------------------------- beside a doubt


says: list[Any] = []


@pytest.mark.parametrize("then", [CANCEL, FAIL, "other", RELEASE, DEGRADE, BREACH, ESCALATE], ids=str)
def test_nothing_goes_past_an_effect_that_only_a_person_can_settle(
    worker: LocalWorker, clock: Clock, declare: Declare, then: Any, django_user_model: Any
) -> None:
    def cut(attempt: Any) -> Any:
        raise AmbiguousOutcome

    ann = django_user_model.objects.create_superuser("ann")
    run = declare(
        "t-doubt-late",
        meta={"deadline": Deadline(hours=2, then=then)},
        hold=Activity(work, commits=Commits("window", release=Servicing(dated.release, idempotent=True)), then="book"),
        book=Activity(work, effect=Effect(reconcile=lambda operation: Unknown("no answer")), then="extra"),
        extra=Activity(work, optional=True, then="done"),
        **({"other": Activity(work, then="done")} if then == "other" else {}),
        done=End(COMPLETE),
    ).start({}, by=ann)
    does["book"] = cut
    worker.run()
    for _ in range(8):
        pass_time(worker, clock, minutes=12)
    assert (status(run)[:2], row(run).error_code) == (("waiting", "HUMAN_REQUIRED"), "OUTCOME_UNKNOWN")
    before = called("book")
    pass_time(worker, clock, hours=1)
    assert (status(run)[0], called("book"), called("other"), dated.window()) == ("waiting", before, 0, "active")
    does["book"] = lambda attempt: {}
    resolve.resolve(f"{run.id}/book/1", verdict="did_not_happen", reason="asked them", by=ann)
    worker.run()
    pass_time(worker, clock, minutes=1)
    ends = {CANCEL: "cancelled", FAIL: "failed", ESCALATE: "waiting"}
    assert status(run)[0] == ends.get(then, "complete")
    assert called("extra") == (1 if then in (RELEASE, BREACH) else 0)
    if then is not ESCALATE:
        assert len(dated.released) == 1


# ---------------------------------------------------------------- freshness


def pr(declare: Declare, then: Any = "look") -> Any:
    fresh = {"main": Fresh(dated.probe, within=hours(2), then=then)}
    return declare(
        "t-fresh",
        look=Decision(work, choices={"go": "ask", "report": "told"}, visits=Visits(3, then="gave_up")),
        ask=Wait("t.f", key="k", then="act", deadline=FAR),
        act=Activity(work, gate=Gate(fresh=fresh), on={Verdict.REVALIDATION_REQUIRED: "look"}, then="after"),
        after=Sleep(hours(5), then="done"),
        told=Sleep(hours(5), then="done"),
        done=End(COMPLETE),
        gave_up=End(COMPLETE),
    )


def test_what_has_gone_stale_while_it_waited_is_decided_anew_before_anybody_answers(
    worker: LocalWorker, clock: Clock, declare: Declare
) -> None:
    run = pr(declare).start({})
    worker.run()
    for visit in (1, 2, 3):
        assert (status(run)[2], called("look"), Timer.objects.filter(kind="freshness", status="pending").count()) == (
            "ask",
            visit,
            1,
        )
        pass_time(worker, clock, minutes=121)
    assert (status(run)[0], status(run)[2], called("look"), called("act")) == ("complete", "gave_up", 3, 0)
    assert [event["name"] for event in events()] == ["main", "main", "main"]


def test_a_new_baseline_moves_it_on(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    run = declare(
        "t-anew",
        look=Decision(work, choices={"go": "ask"}, visits=Visits(3, then="act")),
        ask=Wait(
            "t.f", key="k", choices={"again": "look", "on": "act"}, read=lambda state: state.event["payload"]["do"], deadline=FAR
        ),
        act=Activity(work, gate=Gate(fresh={"main": Fresh(dated.probe, within=hours(2), then=ESCALATE)}), then="done"),
        done=End(COMPLETE),
    ).start({})
    worker.run()
    pass_time(worker, clock, minutes=90)
    flows.signal("e1", "t.f", key="k", payload={"do": "again"})
    worker.run()
    (timer,) = Timer.objects.filter(kind="freshness")
    pass_time(worker, clock, minutes=90)
    assert (status(run), timer.status) == (("waiting", "WAITING", "ask"), "pending")
    flows.signal("e2", "t.f", key="k", payload={"do": "on"})
    worker.run()
    assert status(run)[0] == "complete"
    assert not Timer.objects.filter(status="pending").exists()


def test_after_a_node_has_stood_on_it_its_time_means_nothing(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    run = pr(declare).start({})
    worker.run()
    flows.signal("e1", "t.f", key="k")
    worker.run()
    assert (status(run)[2], Timer.objects.filter(kind="freshness").count()) == ("after", 0)
    pass_time(worker, clock, hours=3)
    assert (status(run), called("look")) == (("waiting", "WAITING", "after"), 1)


@pytest.mark.parametrize("then", ["look", CANCEL, ESCALATE, FAIL, BREACH], ids=str)
def test_on_a_way_where_nobody_wants_it_its_time_means_nothing(
    worker: LocalWorker, clock: Clock, declare: Declare, then: Any
) -> None:
    does["look"] = lambda attempt: Candidate("report", {})
    run = pr(declare, then=then).start({})
    worker.run()
    pass_time(worker, clock, hours=3)
    assert (status(run), called("look")) == (("waiting", "WAITING", "told"), 1)
    assert (dated.timer("freshness", "main"), len(events())) == ("handled", 1)
    pass_time(worker, clock, hours=3)
    assert status(run)[0] == "complete"


def test_it_redoes_nothing_while_a_person_is_to_look(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """Else a model would be asked every two hours, for as long as nobody looks."""
    run = pr(declare).start({})
    worker.run()
    does["act"] = lambda attempt: (_ for _ in ()).throw(flows.errors.CompetenceFailure())
    Timer.objects.filter(kind="freshness").update(kind="sla")  # kept: it is dropped when `act` passes
    flows.signal("e1", "t.f", key="k")
    worker.run()
    Timer.objects.filter(kind="sla").update(kind="freshness")
    assert status(run)[:2] == ("waiting", "HUMAN_REQUIRED")
    pass_time(worker, clock, hours=3)
    assert (status(run)[:2], called("look"), called("act")) == (("waiting", "HUMAN_REQUIRED"), 1, 1)


def test_it_is_dead_with_its_generation(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    run = pr(declare).start({})
    worker.run()
    flows.supersede(run, goal="something else")
    assert not Timer.objects.exists()
    other = pr(declare).start({})
    worker.run()
    Timer.objects.update(epoch=7)
    pass_time(worker, clock, hours=3)
    assert (status(other), dated.timer("freshness", "main"), events()) == (("waiting", "WAITING", "ask"), "stale", [])


def test_a_flow_without_a_policy_for_it_has_no_timer(worker: LocalWorker, declare: Declare) -> None:
    pr(declare, then="").start({})
    worker.run()
    assert set(Timer.objects.values_list("kind", flat=True)) == {"wait_deadline"}
