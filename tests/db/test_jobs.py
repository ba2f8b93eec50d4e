"""Jobs outside: started once, ended by their event or by a poll, given back on every other way (C1, G4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import CANCEL, COMPLETE, ESCALATE, FAILED, Deadline, End, Flow, Job, Pending, hours, minutes
from flows.core.nodes.job import JOB_EXPIRED
from flows.errors import CompetenceFailure
from flows.models import Activity, Commitment, Event, Operation, Timer, Transition, Wait
from flows.services.proceed import Progress, proceed
from flows.services.replay import replay
from flows.testing import Clock, LocalWorker
from tests.factories import LET_GO, another_worker, lose, row, status, take_one, work

pytestmark = pytest.mark.req("C1", "G4")

Declare = Callable[..., type[Flow]]
DAY = Deadline(days=1, then=ESCALATE)

started: list[str] = []
cancelled: list[tuple[str, Any]] = []
says: list[Any] = []


def start(attempt: Any) -> Any:
    started.append(attempt.operation_id)
    return {"id": "j-1"}


def ask(attempt: Any) -> Any:
    assert attempt.results["build"]["start"]["answer"] == {"id": "j-1"}
    answer = says.pop(0) if says else Pending()
    if isinstance(answer, Exception):
        raise answer
    return answer


def give_back(operation: Any) -> None:
    cancelled.append((operation.id, operation.of.evidence))


def key(state: Any) -> str:
    return str(state.results["build"]["start"]["answer"]["id"])


def read(state: Any) -> str:
    return str(state.event["payload"]["state"])


@pytest.fixture(autouse=True)
def clean() -> None:
    for one in (started, cancelled, says):
        one.clear()  # type: ignore[attr-defined]


@pytest.fixture
def build(declare: Declare) -> Callable[..., type[Flow]]:
    def made(**options: Any) -> type[Flow]:
        given = {
            "event": "build.finished", "key": key, "poll": ask, "cancel": give_back, "read": read,
            "deadline": Deadline(hours=2, then="gave_up"), "choices": {"green": "done", "red": "gave_up"},
        }  # fmt: skip
        return declare("t-build", build=Job(start, **{**given, **options}), done=End(COMPLETE), gave_up=End(FAILED))

    return made


def finished(state: str = "green", number: int = 1) -> Any:
    return flows.signal(f"e-{number}", "build.finished", key="j-1", payload={"state": state})


def later(worker: LocalWorker, clock: Clock, **span: float) -> None:
    clock.move(**span)
    worker.tick()
    worker.run()


def drift(run: Any) -> Any:
    (found,) = replay([run])
    return found.drift


def pauses() -> list[int]:
    opened = dict(Wait.objects.values_list("pk", "opened_at"))
    return [round((one.due_at - opened[one.wait_id]).total_seconds()) for one in Timer.objects.filter(kind="poll").order_by("pk")]


def held() -> list[tuple[str, str, str]]:
    return list(Commitment.objects.order_by("pk").values_list("kind", "name", "status"))


def test_its_event_answers(worker: LocalWorker, build: Any) -> None:
    run = build().start({})
    worker.run()
    wait = Wait.objects.get()
    assert (wait.kind, wait.event_type, wait.key, wait.visit) == ("external_job", "build.finished", "j-1", 1)
    assert held() == [("job", "build", "active")]
    assert finished()
    worker.run()
    assert status(run) == ("complete", "COMPLETE", "done")
    answer = Wait.objects.get().result
    assert answer["start"]["answer"] == {"id": "j-1"}
    assert answer["answer"] == {"value": "green", "event": "e-1", "payload": {"state": "green"}}
    assert (held(), cancelled, row(run).owed) == ([("job", "build", "fulfilled")], [], 0)
    assert started == [f"{run.id}/build.start/1"]
    assert drift(run) is None


def test_one_that_was_there_before_the_wait_answers_in_the_same_turn(worker: LocalWorker, build: Any) -> None:
    finished("red")
    run = build().start({})
    worker.run()
    assert (status(run)[0], status(run)[2], held()) == ("failed", "gave_up", [("job", "build", "fulfilled")])
    assert Event.objects.get().status == "consumed"
    assert drift(run) is None


def test_polls_become_rarer_and_the_last_one_answers(worker: LocalWorker, clock: Clock, build: Any) -> None:
    says[:] = [Pending(), Pending(), {"state": "green"}]
    run = build(event="").start({})
    worker.run()
    for _ in range(3):
        later(worker, clock, minutes=3)
    assert status(run) == ("complete", "COMPLETE", "done")
    assert pauses() == [60, 90, 135]
    assert list(Activity.objects.order_by("seq").values_list("step", "visit", "attempt")) == [
        ("start", 1, 1), ("answer", 1, 1), ("answer", 1, 1), ("answer", 1, 1),
    ]  # fmt: skip
    assert set(Wait.objects.values_list("status", "visit")) == {("satisfied", 1)}
    assert Activity.objects.filter(step="answer").order_by("-seq")[0].result == {
        "value": "green", "event": None, "payload": {"state": "green"},
    }  # fmt: skip
    assert (held(), cancelled, len(started), Operation.objects.filter(kind="effect").count()) == (
        [("job", "build", "fulfilled")], [], 1, 1,
    )  # fmt: skip
    assert drift(run) is None


def test_no_pause_is_longer_than_a_quarter_of_an_hour_but_where_it_is_said(worker: LocalWorker, clock: Clock, build: Any) -> None:
    run = build(event="", every=hours(1)).start({})
    worker.run()
    later(worker, clock, minutes=61)
    assert pauses() == [3600, 3600]
    assert status(run)[0] == "waiting"


def test_an_event_that_comes_while_it_is_asked_is_early_for_the_next_wait(worker: LocalWorker, clock: Clock, build: Any) -> None:
    run = build().start({})
    worker.run()
    clock.move(minutes=2)
    worker.tick()
    owned = take_one(worker)
    assert proceed(owned, owned.opening, LET_GO) is Progress.LEFT
    assert finished().place == "between"
    worker.run()
    assert (status(run)[0], Event.objects.get().status, held()) == ("complete", "consumed", [("job", "build", "fulfilled")])
    assert drift(run) is None


def test_an_event_that_comes_with_the_poll_timer_goes_first(worker: LocalWorker, clock: Clock, build: Any) -> None:
    run = build().start({})
    worker.run()
    clock.move(minutes=2)
    finished()
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"
    assert Activity.objects.filter(step="answer").count() == 0
    assert drift(run) is None


def test_an_event_after_the_answer_of_a_poll_changes_nothing(worker: LocalWorker, clock: Clock, build: Any) -> None:
    says[:] = [{"state": "green"}]
    run = build().start({})
    worker.run()
    later(worker, clock, minutes=2)
    assert status(run)[0] == "complete"
    finished("red")
    assert (status(run)[2], Event.objects.get().status != "consumed") == ("done", True)


def test_its_time_counts_from_the_start_over_all_its_waits(worker: LocalWorker, clock: Clock, build: Any) -> None:
    run = build().start({})
    worker.run()
    (until,) = Wait.objects.values_list("deadline_at", flat=True)
    later(worker, clock, minutes=30)
    later(worker, clock, minutes=30)
    moments = set(Wait.objects.values_list("deadline_at", flat=True))
    assert (len(moments), moments) == (1, {until}), "no poll moves it"
    later(worker, clock, minutes=61)
    worker.run()
    assert (status(run)[0], held(), len(cancelled)) == ("failed", [("job", "build", "released")], 1)
    assert cancelled[0][1] == {"id": "j-1"}
    assert drift(run) is None


def test_a_person_is_told_when_it_is_over(worker: LocalWorker, clock: Clock, build: Any) -> None:
    run = build(poll=None, deadline=Deadline(hours=2, then=ESCALATE)).start({})
    worker.run()
    later(worker, clock, hours=3)
    found = row(run)
    assert (found.status, found.outcome, found.error_code) == ("waiting", "HUMAN_REQUIRED", JOB_EXPIRED)
    assert held() == [("job", "build", "active")], "nobody has given it back yet"
    assert drift(run) is None


@pytest.mark.parametrize("how", ["cancel", "deadline", "failure"])
def test_every_other_way_gives_it_back_once(worker: LocalWorker, clock: Clock, build: Any, how: str) -> None:
    run = build(**({"deadline": Deadline(hours=1, then=CANCEL)} if how == "deadline" else {})).start({})
    worker.run()
    if how == "cancel":
        flows.cancel(run)
    elif how == "failure":
        says[:] = [CompetenceFailure()]
        later(worker, clock, minutes=2)
        flows.cancel(run)
    else:
        later(worker, clock, hours=2)
    worker.run()
    worker.run()
    assert (status(run)[0], held()) == ("cancelled", [("job", "build", "released")])
    assert len(cancelled) == 1
    finished()
    assert status(run)[0] == "cancelled"


def test_a_newer_goal_gives_it_back(worker: LocalWorker, build: Any) -> None:
    run = build().start({}, key="b")
    worker.run()
    flows.supersede(row(run).intent_id, goal="another", reason="another goal")
    worker.run()
    assert [one for one in held() if one[2] == "released"] == [("job", "build", "released")]
    assert len(cancelled) == 1


def test_a_worker_that_dies_while_it_asks_asks_again_and_starts_nothing(worker: LocalWorker, clock: Clock, build: Any) -> None:
    run = build().start({})
    worker.run()
    clock.move(minutes=2)
    worker.tick()
    owned = take_one(worker)
    assert proceed(owned, owned.opening, LET_GO) is Progress.LEFT
    owned = take_one(worker)
    assert owned.state.activity is not None and (owned.state.activity.step, owned.state.activity.known) == ("answer", False)
    lose(worker)
    says[:] = [{"state": "green"}]
    another_worker().run()
    assert (status(run)[0], len(started)) == ("complete", 1)
    assert drift(run) is None


def test_a_worker_that_dies_in_its_start_asks_for_the_same_again(worker: LocalWorker, build: Any) -> None:
    run = build().start({})
    take_one(worker)
    lose(worker)
    another_worker().run()
    finished()
    another_worker().run()
    assert (status(run)[0], set(started)) == ("complete", {f"{run.id}/build.start/1"})


def test_paused_meanwhile_it_goes_on_where_it_was(worker: LocalWorker, clock: Clock, build: Any) -> None:
    says[:] = [Pending(), {"state": "green"}]
    run = build().start({})
    worker.run()
    flows.pause(run)
    later(worker, clock, minutes=2)
    assert status(run)[0] == "paused"
    flows.resume(run)
    worker.run()
    later(worker, clock, minutes=2)
    assert (status(run)[0], len(started)) == ("complete", 1)
    assert drift(run) is None


def test_each_visit_is_a_job_of_its_own(worker: LocalWorker, build: Any, declare: Declare) -> None:
    job = Job(start, event="build.finished", key="j-1", read=read, cancel=give_back, visits=flows.Visits(2, then="done"),
              choices={"green": "done", "red": "build"}, deadline=Deadline(hours=2, then="done"))  # fmt: skip
    run = declare("t-again", build=job, done=End(COMPLETE, result=lambda state: state.results["build"]["answer"])).start({})
    worker.run()
    finished("red")
    worker.run()
    assert (len(set(started)), list(Wait.objects.order_by("pk").values_list("visit", flat=True))) == (2, [1, 2])
    finished("green", 2)
    worker.run()
    assert row(run).result["value"] == "green"
    assert drift(run) is None


def test_the_answer_of_a_later_visit_leaves_the_job_of_an_earlier_one(
    worker: LocalWorker, clock: Clock, build: Any, declare: Declare
) -> None:
    """What was given up, because its time was over, still runs outside: it is given back at the end."""
    job = Job(start, event="build.finished", key="j-1", read=read, cancel=give_back, visits=flows.Visits(3, then="done"),
              choices={"green": "done"}, deadline=Deadline(hours=2, then="build"))  # fmt: skip
    run = declare("t-given-up", build=job, done=End(COMPLETE)).start({})
    worker.run()
    later(worker, clock, hours=3)
    finished("green", 2)
    worker.run()
    assert len(set(started)) == 2
    assert held() == [("job", "build", "released"), ("job", "build", "fulfilled")]
    assert (status(run)[0], row(run).owed, [one for one, _ in cancelled]) == (
        "complete", 0, [Operation.objects.get(kind="release").pk],
    )  # fmt: skip
    assert drift(run) is None


def test_an_undeclared_answer_waits_for_a_person(worker: LocalWorker, build: Any) -> None:
    run = build().start({})
    worker.run()
    finished("purple")
    worker.run()
    assert row(run).error_code == "UNDECLARED_CHOICE"


def test_the_log_says_why_it_went_on(worker: LocalWorker, clock: Clock, build: Any) -> None:
    says[:] = [Pending()]
    run = build().start({})
    worker.run()
    later(worker, clock, minutes=2)
    found = list(Transition.objects.filter(workflow_id=run.id).order_by("seq").values_list("trigger", flat=True))
    assert found == ["start", "claim", "completed", "timer", "claim", "woken", "completed"]
    assert minutes(1) == Job(start, then="x").every


@pytest.mark.parametrize("runs", [1, 3])
def test_its_event_answers_where_an_activity_follows(worker: LocalWorker, declare: Declare, runs: int) -> None:
    """Those of one claim whose waits were answered enter what follows in one statement: not where something else is to be written, too."""
    flow = declare(
        "t-build-on", build=Job(start, event="build.finished", key=key, cancel=give_back, deadline=DAY, then="after"),
        after=flows.Activity(work, then="done"), done=End(COMPLETE),
    )  # fmt: skip
    made = [flow.start({}) for _ in range(runs)]
    worker.run()
    assert len(finished().woken) == runs
    worker.run()
    assert {status(run)[0] for run in made} == {"complete"}
    assert (held(), cancelled) == ([("job", "build", "fulfilled")] * runs, [])


def test_after_a_poll_that_knew_nothing_its_event_answers(worker: LocalWorker, clock: Clock, build: Any) -> None:
    run = build().start({})
    worker.run()
    later(worker, clock, minutes=5)
    assert bool(finished())
    other = another_worker()
    other.run()
    assert (status(run)[0], held(), cancelled) == ("complete", [("job", "build", "fulfilled")], [])
