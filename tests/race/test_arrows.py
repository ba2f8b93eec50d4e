"""The owner's arrows against everybody else's: whoever commits first moves the workflow, the other sees it and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows.core.protocol import Status
from flows.models import Activity, Attempt, Intent, Transition, Worker
from flows.services import attempting as attempts
from flows.services import describe, sweeps
from flows.services.opening import open_batch
from flows.services.owned import Owned
from flows.services.proceed import Progress
from flows.services.start import Started
from flows.store.sql import run as execute
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, row, status
from tests.support.races import all_of, overtaken, racers, together, wait_for

pytestmark = pytest.mark.req("A3", "D3")

USING = "default"
ROUNDS = 120


def running(worker: LocalWorker) -> tuple[Started, Owned]:
    run = Line.start({})
    owned = factories.take_one(worker)
    assert factories.enter(owned) is Progress.RUN
    return run, owned


def finish(owned: Owned) -> Any:
    """The owner commits its result; what came too late is kept."""
    progress = factories.try_complete(owned)
    if progress is Progress.LOST:
        attempts.keep_late(owned, factories.ending({"by": "hand"}))
    return progress


def overdue(run: Any) -> None:
    execute("overdue", "UPDATE outlast_activity SET timeout_at = 'epoch' WHERE workflow_id = %(id)s::uuid", {"id": run.id}, USING)


def dead(owned: Owned) -> None:
    Worker.objects.filter(pk=owned.worker).update(status="dead")


#: name → (what makes ready for it, the action, the status that the workflow has if the action came first)
OTHERS: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "cancel": (lambda run, owned: None, lambda run: flows.cancel(run), "cancelled"),
    "supersede": (lambda run, owned: None, lambda run: flows.supersede(run, goal="x"), "superseded"),
    "put back": (lambda run, owned: dead(owned), lambda run: sweeps.put_back([run.id], USING), "runnable"),
    "time out": (lambda run, owned: overdue(run), lambda run: sweeps.time_out(USING), "waiting"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_an_advance_behind_another_arrow_loses(worker: LocalWorker, name: str) -> None:
    prepare, act, after = OTHERS[name]
    run, owned = running(worker)
    prepare(run, owned)
    met = overtaken(lambda: act(run), lambda: finish(owned))
    assert (met.second, met.blocked) == (Progress.LOST, True)
    assert row(run).status == after
    assert not Activity.objects.filter(workflow_id=run.id, node="two").exists()
    assert Attempt.objects.get(workflow_id=run.id).late_result == {"by": "hand"}


@pytest.mark.parametrize("name", ["cancel", "supersede"])
def test_another_arrow_behind_an_advance_takes_the_next_step(worker: LocalWorker, name: str) -> None:
    _, act, after = OTHERS[name]
    run, owned = running(worker)
    met = overtaken(lambda: finish(owned), lambda: act(run))
    assert (met.first, met.blocked) == (Progress.RUN, True)
    assert status(run)[0] == after
    assert list(Activity.objects.filter(workflow_id=run.id).order_by("seq").values_list("node", "status")) == [
        ("one", "done"),
        ("two", "fenced"),
    ]
    assert finish(owned) is Progress.LOST


@pytest.mark.parametrize("name", ["put back", "time out"])
def test_a_sweep_behind_an_advance_skips_and_loses(worker: LocalWorker, name: str) -> None:
    prepare, act, _ = OTHERS[name]
    run, owned = running(worker)
    prepare(run, owned)
    met = overtaken(lambda: finish(owned), lambda: act(run))
    assert (met.first, met.second, met.blocked) == (Progress.RUN, 0, False)
    assert status(run) == ("running", "", "two")


@pytest.mark.parametrize("name", OTHERS)
def test_one_of_two_arrows_loses_every_time(worker: LocalWorker, name: str) -> None:
    prepare, act, _ = OTHERS[name]
    seen: Counter[Any] = Counter()
    with racers(2) as (owner, other):
        for _ in range(ROUNDS):
            worker.stop()
            holder = factories.another_worker()
            run, owned = running(holder)
            prepare(run, owned)
            outcomes = together((owner, lambda: finish(owned)), (other, lambda: act(run)))
            assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
            seen[outcomes[0]] += 1
            found = list(Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("trigger", flat=True))
            if outcomes[0] is Progress.LOST:
                assert "completed" not in found
                assert Attempt.objects.filter(workflow_id=run.id, late_result__isnull=False).count() == 1
            else:
                assert found[2] == "completed"
            flows.cancel(run)
            holder.stop()
    assert set(seen) <= {Progress.RUN, Progress.LOST}


def answered(worker: LocalWorker, count: int = 1) -> tuple[list[Started], list[Owned]]:
    """Workflows whose wait was answered, claimed together."""
    runs = [Ask.start({"key": f"k{number}"}) for number in range(count)]
    worker.run()
    for number in range(count):
        flows.signal(f"e{number}", "t.asked", key=f"k{number}")
    batch = factories.take_up_to(worker, count)
    assert len(batch) == count
    return runs, batch


def open_all(batch: list[Owned]) -> list[bool]:
    """Which of them have an activity running after the statement that opens them together."""
    open_batch(batch, factories.STAY)
    return [owned.state.activity is not None for owned in batch]


@pytest.mark.parametrize(
    ("name", "act", "after"),
    [
        ("cancel", flows.cancel, "cancelled"),
        ("supersede", lambda run: flows.supersede(run, goal="x"), "superseded"),
        ("pause", flows.pause, "running"),
    ],
)
def test_opening_leaves_out_what_somebody_holds(worker: LocalWorker, name: str, act: Callable[[Any], Any], after: str) -> None:
    runs, batch = answered(worker, 3)
    met = overtaken(lambda: act(runs[1]), lambda: open_all(batch))
    assert (met.second, met.blocked) == ([True, False, True], False)
    assert [row(run).status for run in runs] == ["running", after, "running"]
    assert open_all([batch[1]]) == [False]
    assert not Activity.objects.filter(workflow_id=runs[1].id, node="after").exists()


@pytest.mark.parametrize("act", [flows.cancel, lambda run: flows.supersede(run, goal="x")])
def test_another_arrow_behind_an_opening_fences_it(worker: LocalWorker, act: Callable[[Any], Any]) -> None:
    (run,), batch = answered(worker)
    met = overtaken(lambda: open_all(batch), lambda: act(run))
    assert (met.first, met.blocked) == ([True], True)
    assert Activity.objects.get(workflow_id=run.id, node="after").status == "fenced"
    assert finish(batch[0]) is Progress.LOST


def test_opening_against_verbs_of_its_rows_never_blocks_for_ever(worker: LocalWorker) -> None:
    with racers(2) as (owner, person):
        for number in range(ROUNDS // 4):
            runs = [Ask.start({"key": f"{number}.0"})]
            intent = runs[0].intent_id
            runs += [Ask.start({"key": f"{number}.{index}"}, intent=intent) for index in range(1, 5)]
            worker.run()
            for index in range(5):
                flows.signal(f"e{number}.{index}", "t.asked", key=f"{number}.{index}")
            batch = factories.take_up_to(worker, 5)
            outcomes = together((owner, lambda: open_all(batch)), (person, lambda: flows.supersede(intent, goal="y")))
            assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
            assert {row(run).status for run in runs} == {"superseded"}
            assert not Activity.objects.filter(workflow_id__in=[run.id for run in runs], status="running").exists()


def test_an_advance_behind_a_pause_follows_it(worker: LocalWorker) -> None:
    run, owned = running(worker)
    met = overtaken(lambda: flows.pause(run), lambda: finish(owned))
    assert (met.second, met.blocked) == (Progress.LEFT, True)
    assert status(run) == ("paused", "WAITING", "two")
    assert Activity.objects.get(workflow_id=run.id, node="one").status == "done"


def test_a_pause_behind_an_advance_is_followed_at_the_next_step(worker: LocalWorker) -> None:
    run, owned = running(worker)
    met = overtaken(lambda: finish(owned), lambda: flows.pause(run))
    assert (met.first, met.second.answer, met.blocked) == (Progress.RUN, "accepted", True)
    assert finish(owned) is Progress.LEFT
    assert status(run) == ("paused", "WAITING", "three")


def test_a_pause_behind_the_last_step_loses(worker: LocalWorker) -> None:
    run, owned = running(worker)
    finish(owned)
    finish(owned)
    met = overtaken(lambda: finish(owned), lambda: flows.pause(run))
    assert (met.first, met.second.answer, met.blocked) == (Progress.LEFT, "too_late", True)
    assert status(run)[0] == "complete"


def test_pause_and_resume_against_three_steps_never_strand(worker: LocalWorker) -> None:
    with racers(2) as (owner, person):
        for _ in range(ROUNDS):
            run = Line.start({})
            together((owner, lambda: worker.run()), (person, lambda: [flows.pause(run), flows.resume(run), flows.pause(run)]))
            assert status(run)[0] in ("paused", "complete")
            flows.resume(run)
            worker.run()
            assert status(run)[0] == "complete"
    assert set(Attempt.objects.values_list("outcome", flat=True)) <= {"succeeded", "returned"}
    assert Attempt.objects.filter(outcome="succeeded").count() == 3 * ROUNDS


@pytest.mark.parametrize("verb", ["cancel", "pause"])
def test_the_second_of_two_equal_verbs_loses(worker: LocalWorker, verb: str) -> None:
    act = getattr(flows, verb)
    for source in (Status.RUNNABLE, Status.RUNNING, Status.WAITING):
        run = factories.in_status(source, worker)
        met = overtaken(lambda run=run: act(run), lambda run=run: act(run))  # type: ignore[misc]
        assert (met.first.answer, met.second.answer, met.blocked) == ("accepted", "already", True)


def test_the_second_of_two_resumes_loses(worker: LocalWorker) -> None:
    run = factories.in_status(Status.PAUSED, worker)
    met = overtaken(lambda: flows.resume(run), lambda: flows.resume(run))
    assert (met.first.answer, met.second.answer) == ("accepted", "already")
    answers = all_of([lambda: flows.pause(run).answer] * 4)
    assert sorted(answers) == ["accepted", "already", "already", "already"]
    answers = all_of([lambda: flows.resume(run).answer] * 4)
    assert sorted(answers) == ["accepted", "already", "already", "already"]
    assert Transition.objects.filter(workflow_id=run.id, trigger="resume").count() == 2


def test_a_claim_behind_a_cancel_loses(worker: LocalWorker) -> None:
    run = Line.start({})
    met = overtaken(lambda: flows.cancel(run), lambda: factories.take_up_to(worker, 1))
    assert met.second == []
    assert status(run)[0] == "cancelled"


def test_a_cancel_behind_a_claim_fences_it(worker: LocalWorker) -> None:
    run = Line.start({})
    met = overtaken(lambda: factories.take_up_to(worker, 1), lambda: flows.cancel(run))
    assert met.second.answer == "accepted"
    (owned,) = met.first
    assert finish(owned) is Progress.LOST
    assert status(run)[0] == "cancelled"


def test_a_heartbeat_behind_a_cancel_loses(worker: LocalWorker) -> None:
    run, owned = running(worker)
    attempt = attempts.Attempt(owned, worker)
    met = overtaken(lambda: flows.cancel(run), lambda: attempt.note({"page": 7}))
    assert met.second in ("cancel", "lost")
    assert met.blocked
    assert Activity.objects.get(workflow_id=run.id).notes is None
    assert attempt.heartbeat() == "cancel"


def test_a_cancel_behind_a_heartbeat_waits_and_wins(worker: LocalWorker) -> None:
    run, owned = running(worker)
    attempt = attempts.Attempt(owned, worker)
    met = overtaken(lambda: attempt.note({"page": 7}), lambda: flows.cancel(run))
    assert (met.first, met.second.answer, met.blocked) == ("continue", "accepted", True)


def test_a_checkpoint_behind_a_put_back_loses(worker: LocalWorker) -> None:
    run, owned = running(worker)
    attempt = attempts.Attempt(owned, worker)
    dead(owned)
    met = overtaken(lambda: sweeps.put_back([run.id], USING), lambda: attempt.save_checkpoint({"revision": "old"}))
    assert isinstance(met.second, flows.core.errors.LostOwnership)  # type: ignore[attr-defined]
    assert row(run).checkpoint is None


@pytest.mark.req("D1")
def test_a_start_behind_a_supersede_is_of_the_new_version(worker: LocalWorker) -> None:
    run = Line.start({})
    met = overtaken(lambda: flows.supersede(run, goal="x"), lambda: Line.start({}, intent=run.intent_id))
    assert met.blocked
    assert (row(met.second).intent_version, row(met.second).status) == (2, "runnable")
    assert met.first.ended == (run.id,)


@pytest.mark.req("D1")
def test_a_supersede_behind_a_start_ends_it_too(worker: LocalWorker) -> None:
    run = Line.start({})
    met = overtaken(lambda: Line.start({}, intent=run.intent_id), lambda: flows.supersede(run, goal="x"))
    assert met.blocked
    assert set(met.second.ended) == {run.id, met.first.id}


@pytest.mark.req("D1", "D2")
def test_no_run_of_an_old_version_survives_its_supersede(worker: LocalWorker) -> None:
    """Starts under the intent, claims and steps, against one new goal after another."""
    first = Line.start({})
    other = factories.another_worker()
    with racers(4) as threads:
        for number in range(60):
            together(
                (threads[0], lambda: Line.start({}, intent=first.intent_id)),
                (threads[1], lambda: worker.run()),
                (threads[2], lambda: other.run()),
                (threads[3], lambda number=number: flows.supersede(first.intent_id, goal=f"goal {number}")),
            )
            version = Intent.objects.get(pk=first.intent_id).version
            live = flows.models.Workflow.objects.filter(intent_id=first.intent_id).exclude(  # type: ignore[attr-defined]
                status__in=["complete", "superseded"]
            )
            assert set(live.values_list("intent_version", flat=True)) <= {version}
    worker.run()


@pytest.mark.req("A4")
def test_a_check_of_moving_workflows_raises_no_false_alarm(worker: LocalWorker) -> None:
    for _ in range(30):
        Line.start({})
        Ask.start({"key": "k"})
    checked = [0]

    def check() -> list[Any]:
        wrong = []
        while not done.done() or not checked[0]:
            wrong += [found for found in describe.verify() if found[1]]
            checked[0] += 1
        return wrong

    def work() -> None:
        wait_for(lambda: checked[0] > 0)
        worker.run()
        flows.signal("e1", "t.asked", key="k")
        worker.run()

    with racers(2) as (one, two):
        done = one.do(work)
        looking = two.do(check)
        done.result(60)
        assert looking.result(60) == []
    assert checked[0] > 1
