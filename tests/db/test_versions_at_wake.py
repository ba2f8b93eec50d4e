"""Migrated by the worker that takes a run up: because it no longer knows the old version, or because the flow says so."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Retry, Wait, registry, seconds
from flows.errors import CannotMigrate
from flows.models import Activity as ActivityRow
from flows.models import Attempt, Notice, Operation, Transition, Worker
from flows.models import Wait as WaitRow
from flows.services import turn
from flows.services.servicing import run_servicing
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import calls, does, row, status
from tests.support.versions import Declare, log, note, unload, version

pytestmark = pytest.mark.req("G2")

NAME = "t-waking"
REQUIRED = "WORKFLOW_MIGRATION_REQUIRED"
SLOWLY = Retry(max_attempts=3, initial=seconds(100), jitter=0)


def line(*names: str, **nodes: Any) -> dict[str, Any]:
    made = {
        name: Activity(factories.work, retry=SLOWLY, then=after) for name, after in zip(names, [*names[1:], "done"], strict=True)
    }
    return {**made, **nodes, "done": End(COMPLETE, result=lambda state: dict(state.results))}


def ask(then: str = "after") -> Wait:
    return Wait("t.woken", key="k", deadline=Deadline(hours=1, then=ESCALATE), then=then)


def only_new(worker: LocalWorker, declare: Declare, old: type[flows.Flow], nodes: dict[str, Any], **meta: Any) -> None:
    """A deployment that has version 2 in place of version 1."""
    unload(old)
    version(declare, NAME, 2, nodes, **meta)
    factories.offer(worker)


def triggers(run: Any) -> list[str]:
    return [entry[2] for entry in log(run)]


def test_a_woken_run_of_a_version_that_is_gone_is_migrated_first(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, {"ask": ask(), **line("after")})
    run = one.start({})
    worker.run()
    only_new(worker, declare, one, {"ask": ask("scan"), **line("scan", "after")}, migrate_from={1: {}})
    assert worker.run() == 0  # it sleeps: nothing is done before it wakes
    assert row(run).flow_version == 1
    flows.signal("e1", "t.woken", key="k", payload={"n": 1})
    worker.run()
    assert (status(run)[0], row(run).flow_version, row(run).epoch) == ("complete", 2, 1)
    assert row(run).result["ask"]["payload"] == {"n": 1}
    assert [call[0] for call in calls] == ["scan", "after"]
    assert triggers(run)[3:7] == ["event", "claim", "migrate", "claim"]
    assert Transition.objects.get(workflow_id=run.id, trigger="migrate").trigger_ref == "at_wake"


def test_many_that_wake_together(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, {"ask": ask(), **line("after")})
    runs = [one.start({}) for _ in range(5)]
    worker.batch_size = 5
    worker.run()
    only_new(worker, declare, one, {"ask": ask("scan"), **line("scan", "after")}, migrate_from={1: {}})
    flows.signal("e1", "t.woken", key="k")
    worker.run()
    assert {(status(run)[0], row(run).flow_version) for run in runs} == {("complete", 2)}


def test_a_scheduled_activity_is_not_counted_as_tried(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    one = version(declare, NAME, 1, line("a"))
    run = one.start({})
    does["a"] = factories.failing(1)
    worker.run()
    only_new(worker, declare, one, line("a", "b"), migrate_from={1: {}})
    clock.move(seconds=101)
    worker.tick()
    worker.run()
    assert (status(run)[0], calls) == ("complete", [("a", 1, 1), ("a", 1, 2), ("b", 1, 1)])
    assert row(run).attempts == sum(ActivityRow.objects.values_list("attempt", flat=True)) == Attempt.objects.count() == 3


def test_an_activity_that_is_left_behind_was_never_tried(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, line("a"))
    run = one.start({})
    only_new(worker, declare, one, line("b"), migrate_from={1: {"a": "b"}})
    worker.run()
    assert (status(run)[0], calls) == ("complete", [("b", 1, 1)])
    assert list(ActivityRow.objects.order_by("seq").values_list("node", "status", "attempt")) == [
        ("a", "fenced", 0),
        ("b", "done", 1),
    ]


def test_while_the_old_version_is_known_its_runs_stay(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    version(declare, NAME, 2, {"ask": ask("scan"), **line("scan", "after")}, migrate_from={1: {}})
    flows.signal("e1", "t.woken", key="k")
    worker.run()
    assert (status(run)[0], row(run).flow_version) == ("complete", 1)


def test_unless_the_flow_says_at_wake(worker: LocalWorker, declare: Declare) -> None:
    run = version(declare, NAME, 1, {"ask": ask(), **line("after")}).start({})
    worker.run()
    version(declare, NAME, 2, {"ask": ask("scan"), **line("scan", "after")}, migrate_from={1: {}}, migrate="at_wake")
    flows.signal("e1", "t.woken", key="k")
    worker.run()
    assert (status(run)[0], row(run).flow_version) == ("complete", 2)


def test_two_steps_at_once(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, line("a", "after"))
    run = one.start({})
    unload(one)
    version(declare, NAME, 2, line("b", "after"), migrate_from={1: {"a": "b"}})
    version(declare, NAME, 3, line("c", "after"), migrate_from={2: {"b": "c"}})
    factories.offer(worker)
    worker.run()
    assert (status(run)[0], row(run).flow_version, note(run)["through"]) == ("complete", 3, [2])


def test_a_pause_that_was_asked_is_followed(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, line("a"))
    run = one.start({})
    only_new(worker, declare, one, line("a", "b"), migrate_from={1: {}})
    factories.offer(worker)
    offered = registry.taken_up(list(zip(worker.flows, worker.versions, strict=True)))
    assert (NAME, 1) in offered
    worker.flows, worker.versions = [name for name, _ in offered], [number for _, number in offered]
    owned = factories.take_one(worker)
    flows.pause(run)
    assert turn.work(worker, owned, factories.STAY).value == "left"
    assert (status(run), row(run).flow_version) == (("paused", "WAITING", "a"), 2)
    assert calls == []
    flows.resume(run)
    worker.run()
    assert [call[0] for call in calls] == ["a", "b"]


def refusing(state: flows.State) -> Any:
    raise CannotMigrate("it has pushed already")


@pytest.mark.parametrize("known", ["gone", "still known"])
def test_a_run_without_a_place_waits_for_a_person(worker: LocalWorker, declare: Declare, known: str) -> None:
    one = version(declare, NAME, 1, {"ask": ask(), **line("after")})
    run = one.start({})
    worker.run()
    if known == "gone":
        unload(one)
    two = version(declare, NAME, 2, {"ask": ask("scan"), **line("scan", "after")}, migrate_from={1: refusing}, migrate="at_wake")
    factories.offer(worker)
    flows.signal("e1", "t.woken", key="k", payload={"n": 1})
    worker.run()
    assert (*status(run), row(run).error_code) == ("waiting", REQUIRED, "ask", REQUIRED)
    last = Transition.objects.get(workflow_id=run.id, seq=row(run).version)
    assert (last.note["verdict"], last.note["reason"]) == (REQUIRED, "it has pushed already")
    assert "it has pushed already" in flows.describe(run).decision_needed
    assert WaitRow.objects.get().evidence["payload"] == {"n": 1}
    flows.resume(run)
    worker.run()
    assert status(run)[1] == REQUIRED  # resuming alone mends nothing
    unload(two)
    version(declare, NAME, 2, {"ask": ask("scan"), **line("scan", "after")}, migrate_from={1: {}})
    factories.offer(worker)
    assert flows.migrate(run)
    worker.run()
    assert (status(run)[0], row(run).result["ask"]["payload"]) == ("complete", {"n": 1})


def test_the_accountable_user_is_told(worker: LocalWorker, declare: Declare, django_user_model: Any) -> None:
    robin = django_user_model.objects.create_user("robin")
    one = version(declare, NAME, 1, line("a"))
    one.start({}, by=robin)
    only_new(worker, declare, one, line("b"), migrate_from={1: lambda state: None})
    worker.run()
    assert Notice.objects.values_list("outcome", "code").get() == (REQUIRED, REQUIRED)
    assert ActivityRow.objects.get().status == "scheduled"


def test_what_no_version_migrates_from_stays_ready(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, line("a"))
    run = one.start({})
    only_new(worker, declare, one, line("a", "b"))
    assert worker.run() == 0
    assert status(run)[0] == "runnable"
    assert "no live one offers t-waking@1" in flows.describe(run).decision_needed


def test_describe_knows_that_a_newer_worker_takes_it(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, line("a"))
    run = one.start({})
    only_new(worker, declare, one, line("a", "b"), migrate_from={1: {}})
    Worker.objects.update(definitions=[f"{NAME}@2"])
    assert flows.describe(run).decision_needed == "none: it goes on by itself"


def answers(*given: Any) -> Any:
    left = list(given)

    def act(attempt: Any) -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return act


def test_an_effect_in_doubt_is_not_passed(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    """What is to be asked for again is asked for under the version that began it."""

    def send(then: str) -> Activity:
        return Activity(factories.work, retry=SLOWLY, effect=flows.Effect(idempotent=True), then=then)

    run = version(declare, NAME, 1, line("a", a=send("done"))).start({})
    does["a"] = answers(ConnectionResetError(), {"sent": 1})
    worker.run(["agents"])
    run_servicing(worker, worker.using)
    assert (Operation.objects.get().status, status(run)[0]) == ("uncertain", "waiting")
    version(declare, NAME, 2, line("a", "b", a=send("b")), migrate_from={1: {}}, migrate="at_wake")
    found = flows.migrate(run)
    assert (found.answer, row(run).flow_version) == ("refused", 1)
    assert "nobody knows whether" in found.reason
    clock.move(seconds=101)
    worker.tick()
    worker.run()
    assert (status(run)[0], row(run).flow_version, factories.called("b")) == ("complete", 1, 0)
