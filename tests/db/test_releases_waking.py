"""What becomes of a run that wakes while another release is current: each policy, compatible and not, in each way to be woken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows import CANCEL, ESCALATE, HUMAN, MIGRATE, RESUME_PINNED, Deadline, Flow, releases, restart_from
from flows.core.errors import Transient
from flows.models import Activity, Attempt, Notice, Operation, Transition, Verdict
from flows.services import control, notices
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import another_worker, called, row
from tests.support import approving, releasing
from tests.support.releasing import WAYS, answer, begin, both, flow_of, is_at, now_is, pins, register

pytestmark = pytest.mark.req("I1", "H1", "T1")

Declare = Callable[..., type[Flow]]
POLICIES = {"pinned": RESUME_PINNED, "migrate": MIGRATE, "restart": restart_from("again"), "human": HUMAN, "cancel": CANCEL}


@pytest.mark.failure("release changes during a wait")
@pytest.mark.parametrize("cause", WAYS)
@pytest.mark.parametrize("compatible", [True, False], ids=["compatible", "not"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_compatibility_decision_before_it_goes_on(
    worker: LocalWorker, clock: Clock, declare: Declare, policy: str, cause: str, *, compatible: bool
) -> None:
    """The seed's case "behavioral release changes while workflow waits": nothing silent, each policy as declared."""
    both(compatible=compatible)
    bring, wake = WAYS[cause]
    run = bring(flow_of(declare, POLICIES[policy]), worker, clock)
    now_is("R18")
    before = row(run)
    wake(run, worker, clock)
    assert row(run).status == "runnable"
    worker.run()
    found = row(run)
    logged = Transition.objects.filter(workflow_id=run.id, seq__gt=before.version)
    if policy == "pinned":
        assert (found.release, pins(run)) == ("R17", [])
        assert releasing.finish(run, worker, clock).status == "complete"
    elif policy == "restart" or (policy == "migrate" and compatible):
        assert (found.release, pins(run)) == ("R18", [("running", "R17", "R18")])
        assert (called("again") == 1) is (policy == "restart")
        done = releasing.finish(run, worker, clock)
        assert (done.status, done.release, called("act") >= 1) == ("complete", "R18", True)
    elif policy == "cancel":
        assert (found.status, found.release) == ("cancelled", "R17")
        assert logged.filter(note__reason="RELEASE_CHANGED").exists()
    else:
        assert is_at(run)[0::2] == ("waiting", "R17")
        assert (found.outcome, found.error_code) == ("HUMAN_REQUIRED", "RELEASE_INCOMPATIBLE")
        verdict = Verdict.objects.get(workflow_id=run.id)
        assert (verdict.verdict, verdict.cause) == ("RELEASE_INCOMPATIBLE", cause)
        assert "flows releases move" in verdict.reason


@pytest.mark.parametrize("policy", POLICIES)
def test_an_answer_of_a_person_wakes_no_other_behaviour_either(declare: Declare, world: approving.World, policy: str) -> None:
    with factories.declaring(world.worker) as declaring:
        both(compatible=True)
        on_release = restart_from("propose") if policy == "restart" else POLICIES[policy]
        request = world.ask({"text": "1"}, {"text": "2"}, flow=releasing.asking_flow(declaring, on_release))
        now_is("R18")
        world.decide(request)
        world.worker.run()
        found = world.workflow(request)
        expected = {
            "pinned": ("complete", "R17"), "migrate": ("complete", "R18"), "restart": ("waiting", "R18"),
            "human": ("waiting", "R17"), "cancel": ("cancelled", "R17"),
        }[policy]  # fmt: skip
        assert (found.status, found.release) == expected
        if policy == "restart":
            assert world.request_of(found).pk != request.pk, "the new candidate is asked about anew"
        if policy == "human":
            assert Verdict.objects.get(workflow_id=found.pk).cause == "approval"
            assert releases.move(found, to="R18", by=world.sue, reason="Read both")
            world.worker.run()
            assert world.workflow(request).status == "complete", "the approval of exactly this candidate still holds"
        flows.cancel(found)


@pytest.fixture
def world(transactional_db: None, settings: Any) -> Iterator[approving.World]:
    yield from approving.world.__wrapped__(transactional_db, settings)  # type: ignore[attr-defined]


# ------------------------------------------------------------------ the arrow


def test_the_pin_is_an_arrow_of_its_own_in_the_commit_of_the_move(worker: LocalWorker, declare: Declare) -> None:
    both(compatible=True)
    run = begin(flow_of(declare, MIGRATE), worker)
    now_is("R18")
    answer(run)
    worker.run()
    log = list(Transition.objects.filter(workflow_id=run.id).order_by("seq"))
    at = next(index for index, one in enumerate(log) if one.trigger == "pin")
    pin, after = log[at], log[at + 1]
    assert (pin.from_status, pin.to_status, pin.from_node, pin.to_node) == ("running", "running", "ask", "ask")
    assert (pin.trigger_ref, pin.note) == ("R18", {"release": {"from": "R17", "to": "R18"}})
    assert (after.to_node, after.epoch) == ("nap", 0)
    assert row(run).epoch == 0, "nothing was in flight, so nothing is fenced"


def test_a_wait_that_is_not_over_is_kept(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """Woken for nothing under another release: the same wait, with its deadline, under the new one."""
    both(compatible=True)
    run = begin(flow_of(declare, MIGRATE), worker)
    due = row(run).due_at
    now_is("R18")
    flows.pause(run)
    flows.resume(run)
    worker.run()
    assert is_at(run) == ("waiting", "ask", "R18", None)
    assert row(run).due_at == due


def test_beginning_again_ends_what_was_open(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    both()
    factories.does["act"] = factories.failing(1, Transient)
    bring, wake = WAYS["retry"]
    run = bring(flow_of(declare, restart_from("again")), worker, clock)
    now_is("R18")
    wake(run, worker, clock)
    worker.run()
    assert is_at(run) == ("waiting", "nap", "R18", None)
    assert list(Activity.objects.filter(workflow_id=run.id, node="act").values_list("status", flat=True)) == ["failed"]
    assert list(Attempt.objects.filter(workflow_id=run.id, node="act").order_by("number").values_list("outcome", flat=True)) == [
        "failed", "refused",
    ]  # fmt: skip
    pin = Transition.objects.get(workflow_id=run.id, trigger="pin")
    assert pin.note["restart"] == "again"


def test_a_declared_route_of_the_refusal_leads_on_under_the_current_release(worker: LocalWorker, declare: Declare) -> None:
    both()
    run = begin(releasing.routed_flow(declare, MIGRATE), worker)
    now_is("R18")
    answer(run)
    worker.run()
    assert is_at(run) == ("waiting", "ask", "R18", None)
    assert called("plan") == 2
    assert Verdict.objects.get(workflow_id=run.id).verdict == "RELEASE_INCOMPATIBLE"
    answer(run)
    worker.run()
    assert row(run).status == "complete"


def test_the_same_content_under_another_name_goes_on_whatever_the_policy(worker: LocalWorker, declare: Declare) -> None:
    register("R17", prompt="the same")
    register("R18", prompt="the same")
    now_is("R17")
    run = begin(flow_of(declare, CANCEL), worker)
    now_is("R18")
    answer(run)
    worker.run()
    assert is_at(run) == ("waiting", "nap", "R18", None)


def test_going_back_to_an_older_release_is_a_change_like_any_other(worker: LocalWorker, declare: Declare) -> None:
    both(compatible=True)
    run = begin(flow_of(declare, MIGRATE), worker)
    now_is("R18")
    flows.pause(run)
    flows.resume(run)
    worker.run()
    now_is("R17")
    answer(run)
    worker.run()
    assert (row(run).release, row(run).error_code) == ("R18", "RELEASE_INCOMPATIBLE"), (
        "R17 does not say that runs of R18 may go on"
    )


def test_a_cancelled_run_tells_its_user_why(worker: LocalWorker, declare: Declare) -> None:
    both()
    user = get_user_model().objects.create_user("ann", email="ann@example.org")
    run = flow_of(declare, CANCEL).start({"key": "k"}, by=user)
    worker.run()
    now_is("R18")
    answer(run)
    worker.run()
    assert row(run).status == "cancelled"
    assert [(one.outcome, one.code) for one in Notice.objects.filter(workflow_id=run.id)] == [("CANCELLED", "RELEASE_CHANGED")]
    assert notices.send_owed("default") == 1


# ------------------------------------------------------------------ workers that carry one release only


def test_a_worker_of_the_current_release_takes_it_over(worker: LocalWorker, declare: Declare) -> None:
    """R17 is gone from the machines: what may migrate does so on a worker of R18."""
    both(compatible=True)
    run = begin(flow_of(declare, MIGRATE), worker)
    now_is("R18")
    worker.stop()
    new = another_worker(releases=["R18"])
    answer(run)
    new.run()
    assert is_at(run) == ("waiting", "nap", "R18", None)


def test_a_worker_of_the_old_release_only_decides_and_hands_it_over(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    both(compatible=True)
    flow = flow_of(declare, MIGRATE)
    bring, wake = WAYS["retry"]
    run = bring(flow, worker, clock)
    worker.stop()
    now_is("R18")
    wake(run, worker, clock)
    calls = called("act")
    old, new = another_worker(releases=["R17"]), another_worker(releases=["R18"])
    old.run()
    assert (row(run).status, row(run).release, called("act")) == ("runnable", "R18", calls), "no code of it ran there"
    assert old.run() == 0
    new.run()
    assert (row(run).status, called("act")) == ("complete", calls + 1)
    assert Transition.objects.get(workflow_id=run.id, trigger="release").to_status == "runnable"


def test_the_next_step_is_handed_over_too(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    both(compatible=True)
    bring, wake = WAYS["timer"]
    run = bring(flow_of(declare, MIGRATE), worker, clock)
    worker.stop()
    now_is("R18")
    wake(run, worker, clock)
    another_worker(releases=["R17"]).run()
    assert (is_at(run), called("act")) == (("runnable", "act", "R18", None), 0)
    another_worker(releases=["R18"]).run()
    assert row(run).status == "complete"


def test_a_bulk_of_woken_runs_is_decided_one_by_one(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    both(compatible=True)
    flow = flow_of(declare, MIGRATE)
    runs = [flow.start({"key": f"k{number}"}) for number in range(6)]
    worker.run()
    for run in runs:
        answer(run)
    worker.run()
    now_is("R18")
    clock.move(minutes=61)
    worker.tick()
    worker.batch_size = 6
    worker.run()
    assert {(row(run).status, row(run).release) for run in runs} == {("complete", "R18")}
    assert all(pins(run) == [("running", "R17", "R18")] for run in runs)


def test_a_pinned_run_waits_for_its_release_however_many_others_work(worker: LocalWorker, declare: Declare) -> None:
    both(compatible=True)
    run = begin(flow_of(declare, RESUME_PINNED), worker)
    now_is("R18")
    worker.stop()
    answer(run)
    new = another_worker(releases=["R18"])
    assert new.run() == 0
    assert is_at(run) == ("runnable", "ask", "R17", None)
    another_worker(releases=["R17"]).run()
    assert is_at(run) == ("waiting", "nap", "R17", None)


def test_another_one_became_current_between_the_claim_and_the_decision(worker: LocalWorker, declare: Declare) -> None:
    """Taken for R18, which is not current any more: nothing runs under a release that the worker does not carry."""
    both(compatible=True)
    run = begin(flow_of(declare, MIGRATE), worker)
    worker.stop()
    now_is("R18")
    answer(run)
    new = another_worker(releases=["R18"])
    rows = [factories.take_one(new)]
    now_is("R17")
    assert factories.reload_of(rows[0]) is not None
    assert row(run).release == "R17"
    assert called("again") == called("act") == 0
    factories.lose(new)


# ------------------------------------------------------------------ doubts


def test_a_doubt_is_taken_along_to_a_compatible_release(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    both(compatible=True)
    run = doubtful(worker, clock, releasing.paying_flow(declare, MIGRATE))
    now_is("R18")
    factories.drive(worker, clock)
    assert (row(run).status, row(run).release) == ("complete", "R18")
    assert Operation.objects.get(workflow_id=run.id).status == "succeeded"


def test_nothing_begins_again_past_a_doubt(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    both()
    run = doubtful(worker, clock, releasing.paying_flow(declare, restart_from("plan")))
    now_is("R18")
    factories.drive(worker, clock)
    assert is_at(run) == ("waiting", "pay", "R17", "RELEASE_INCOMPATIBLE")
    assert releases.move(run, to="R17", by=None, reason="What it did is to be asked about by what did it").code == "kept"
    factories.drive(worker, clock)
    assert (row(run).status, row(run).release) == ("complete", "R17")


def doubtful(worker: LocalWorker, clock: Clock, flow: type[Flow]) -> Any:
    """A run whose payment may have happened; only asking again can tell."""

    def lose(attempt: Any) -> Any:
        factories.does.pop("pay")
        raise ConnectionResetError

    factories.does["pay"] = lose
    run = flow.start({"key": "k"})
    worker.run(["agents"])
    assert row(run).status in ("reconciling", "waiting")
    return run


# ------------------------------------------------------------------ people


def test_a_refusal_between_two_tries_leaves_one_open_activity(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    """The flow's deadline wakes it before the pause is over: its retry window and its activity are both open then."""
    both()
    factories.does["act"] = factories.failing(1, Transient)
    bring, _ = WAYS["retry"]
    flow = flow_of(declare, HUMAN, deadline=Deadline(minutes=61, seconds=5, then=ESCALATE))
    run = bring(flow, worker, clock)
    now_is("R18")
    clock.move(seconds=6)
    worker.tick()
    worker.run()
    assert is_at(run) == ("waiting", "act", "R17", "DEADLINE_EXPIRED")
    assert list(Activity.objects.filter(workflow_id=run.id, node="act").values_list("status", flat=True)) == ["scheduled"]
    assert flows.resume(run)
    worker.run()
    assert is_at(run) == ("waiting", "act", "R17", "RELEASE_INCOMPATIBLE")
    assert releases.move(run, to="R18", by=None, reason="Read both")
    factories.drive(worker, clock)
    assert (row(run).release, row(run).status) == ("R18", "complete")


def test_a_person_lets_it_keep_its_own_until_yet_another_is_current(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    both()
    register("R19")
    run = begin(flow_of(declare, HUMAN), worker)
    now_is("R18")
    answer(run)
    worker.run()
    assert row(run).error_code == "RELEASE_INCOMPATIBLE"
    control.resume(run)
    worker.run()
    assert row(run).error_code == "RELEASE_INCOMPATIBLE", "to resume is no word about the release"
    assert releases.move(run, to="R17", by=None, reason="It is almost done").code == "kept"
    worker.run()
    assert (is_at(run), row(run).passed_over) == (("waiting", "nap", "R17", None), "R18")
    other = another_worker(releases=["R18"])
    worker.stop()
    clock.move(minutes=61)
    other.tick()
    assert other.run() == 0, "it goes on where its own release is offered"
    now_is("R19")
    another_worker(releases=["R19"]).run()
    assert row(run).error_code == "RELEASE_INCOMPATIBLE", "that was a word about R18"


def test_a_person_moves_it_although_it_was_refused(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    both()
    run = begin(flow_of(declare, MIGRATE), worker)
    now_is("R18")
    answer(run)
    worker.run()
    moved = releases.move(run, to="R18", by=None, reason="Read the difference")
    assert (moved.code, moved.status, moved.compatible) == ("moved", "runnable", False)
    worker.run()
    assert is_at(run) == ("waiting", "nap", "R18", None)
    log = Transition.objects.filter(workflow_id=run.id, trigger="pin").get()
    assert log.note == {"release": {"from": "R17", "to": "R18"}, "by": "", "reason": "Read the difference"}
