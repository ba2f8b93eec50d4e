"""A migration against everybody else: whoever commits first moves the run, the other sees it; nothing is lost, nothing is done twice."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Retry, Sleep, Wait, registry, seconds
from flows.models import Event, Timer
from flows.models import Wait as WaitRow
from flows.services import sweeps, turn
from flows.services.migrate import migrate_many
from flows.services.owned import Owned
from flows.services.proceed import Progress
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import does, row, status
from tests.support.obligations import faults
from tests.support.races import overtaken, racers, together
from tests.support.versions import Declare, log, unload, version

pytestmark = pytest.mark.req("A3", "G2")

USING = "default"
NAME = "t-racing-versions"
ROUNDS = 24


def ask(then: str) -> Wait:
    return Wait("t.raced", key=factories.key_of, deadline=Deadline(hours=1, then=ESCALATE), then=then)


def nodes(*names: str, **more: Any) -> dict[str, Any]:
    made = {
        name: Activity(factories.work, retry=Retry(initial=seconds(5), jitter=0), then=after)
        for name, after in zip(names, [*names[1:], "done"], strict=True)
    }
    return {**more, **made, "done": End(COMPLETE, result=lambda state: sorted(state.results))}


@pytest.fixture
def one(worker: LocalWorker, declare: Declare) -> type[flows.Flow]:
    """Both versions; runs begin with the first."""
    made = version(declare, NAME, 1, nodes("a", ask=ask("a")))
    version(declare, NAME, 2, nodes("scan", "a", ask=ask("scan")), migrate_from={1: {}})
    return made


keys = itertools.count()


def waiting(one: type[flows.Flow], worker: LocalWorker) -> tuple[Any, str]:
    key = f"k{next(keys)}"
    run = one.start({}, key=key)
    worker.run()
    assert status(run)[0] == "waiting"
    return run, key


def finish(run: Any, key: str, worker: LocalWorker) -> None:
    """Bring the run to its end under whatever version it has; everything of it is there once."""
    flows.migrate(run)
    flows.resume(run)
    worker.run()
    if status(run)[0] == "waiting":
        flows.signal(f"late-{key}", "t.raced", key=key)
        worker.run()
    assert (status(run)[0], row(run).result) == ("complete", ["a", "ask", "scan"])
    assert faults() == []


#: name → (what makes ready for it, the other action)
OTHERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "signal": (lambda run, key: None, lambda run, key: flows.signal(f"e-{key}", "t.raced", key=key).answer.value),
    "pause": (lambda run, key: None, lambda run, key: flows.pause(run).answer.value),
    "resume": (lambda run, key: flows.pause(run), lambda run, key: flows.resume(run).answer.value),
    "migrate": (lambda run, key: None, lambda run, key: flows.migrate(run).answer.value),
}


@pytest.mark.parametrize("first", ["migrate first", "the other first"])
@pytest.mark.parametrize("name", OTHERS)
def test_the_second_waits_and_sees_what_the_first_did(worker: LocalWorker, one: Any, name: str, first: str) -> None:
    prepare, act = OTHERS[name]
    run, key = waiting(one, worker)
    prepare(run, key)
    actions = (lambda: flows.migrate(run).answer.value, lambda: act(run, key))
    met = overtaken(*(actions if first == "migrate first" else actions[::-1]))
    assert met.blocked
    answers = (met.first, met.second) if first == "migrate first" else (met.second, met.first)
    if name == "migrate":
        assert sorted(answers) == ["already", "migrated"]
    else:
        assert answers == ("migrated", "accepted")
    assert (row(run).flow_version, row(run).epoch) == (2, 1)
    finish(run, key, worker)


@pytest.mark.parametrize("name", OTHERS)
def test_whoever_comes_first_nothing_is_lost(worker: LocalWorker, one: Any, name: str) -> None:
    prepare, act = OTHERS[name]
    seen: Counter[Any] = Counter()
    with racers(2) as (left, right):
        for _ in range(ROUNDS):
            run, key = waiting(one, worker)
            prepare(run, key)
            outcomes = together((left, lambda: flows.migrate(run).answer.value), (right, lambda: act(run, key)))
            assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)], outcomes
            seen[tuple(sorted(outcomes) if name == "migrate" else outcomes)] += 1
            assert (row(run).flow_version, row(run).epoch) == (2, 1)
            finish(run, key, worker)
    assert set(seen) == {("already", "migrated") if name == "migrate" else ("migrated", "accepted")}
    assert not Event.objects.filter(status="pending", event_id__startswith="e-").exists()


@pytest.mark.parametrize("verb", ["cancel", "supersede"])
def test_a_run_that_is_ended_meanwhile_is_ended(worker: LocalWorker, one: Any, verb: str) -> None:
    act = {"cancel": flows.cancel, "supersede": lambda run: flows.supersede(run, goal="another")}[verb]
    ended = {"cancel": "cancelled", "supersede": "superseded"}[verb]
    run, _ = waiting(one, worker)
    met = overtaken(lambda: act(run), lambda: flows.migrate(run))
    assert (met.second.answer, met.second.reason, met.blocked) == ("refused", f"it has ended: {ended}", True)
    run, _ = waiting(one, worker)
    met = overtaken(lambda: flows.migrate(run), lambda: act(run))
    assert (met.first.answer, met.blocked, status(run)[0], row(run).epoch) == ("migrated", True, ended, 2)
    with racers(2) as (left, right):
        for _ in range(ROUNDS):
            run, _ = waiting(one, worker)
            outcomes = together((left, lambda: flows.migrate(run).answer.value), (right, lambda: act(run)))
            assert outcomes[0] in ("migrated", "refused"), outcomes
            assert status(run)[0] == ended
            assert not WaitRow.objects.filter(workflow_id=run.id, status="open").exists()
    assert faults() == []


def test_a_claim_passes_by_a_run_that_is_being_migrated(worker: LocalWorker, one: Any) -> None:
    run = one.start({}, key="k")
    met = overtaken(lambda: flows.migrate(run), lambda: factories.take_up_to(worker, 1))
    assert (met.first.answer, met.second, met.blocked) == ("migrated", [], False)
    (owned,) = factories.take_up_to(worker, 1)
    assert owned.row.flow_version == 2
    run = one.start({}, key="l")
    met = overtaken(lambda: factories.take_up_to(worker, 1), lambda: flows.migrate(run))
    assert (met.second.answer, met.blocked, len(met.first)) == ("busy", True, 1)
    (found,) = migrate_many([run.id])
    assert found.answer == "busy"


def test_claims_against_migrations(worker: LocalWorker, one: Any) -> None:
    seen: Counter[Any] = Counter()
    with racers(2) as (left, right):
        for number in range(ROUNDS):
            run = one.start({}, key=f"c{number}")
            answer, taken = together(
                (left, lambda: flows.migrate(run).answer.value), (right, lambda: factories.take_up_to(worker, 1))
            )
            assert (answer, len(taken)) in {("busy", 1), ("migrated", 0), ("migrated", 1)}
            seen[answer] += 1
            for owned in taken:
                assert owned.row.flow_version == row(run).flow_version
                factories.enter(owned)
            flows.cancel(run)
    assert faults() == []


def test_a_timer_against_a_migration(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    """The sweep passes by what is being migrated; the moment went over, and the next sweep fires it."""
    first = version(declare, "t-napping", 1, nodes("a", nap=Sleep(seconds(60), then="a")))
    version(declare, "t-napping", 2, nodes("scan", "a", nap=Sleep(seconds(60), then="scan")), migrate_from={1: {}})
    run = first.start({})
    worker.run()
    clock.move(seconds=61)
    met = overtaken(lambda: flows.migrate(run), lambda: sweeps.fire_timers(USING))
    assert (met.first.answer, met.second, met.blocked) == ("migrated", 0, False)
    sweeps.fire_timers(USING)
    worker.run()
    assert row(run).result == ["a", "scan"]
    with racers(2) as (left, right):
        for _ in range(ROUNDS):
            run = first.start({})
            worker.run()
            clock.move(seconds=61)
            outcomes = together((left, lambda: flows.migrate(run).answer.value), (right, lambda: sweeps.fire_timers(USING)))
            assert outcomes[0] == "migrated", outcomes
            assert outcomes[1] in (0, 1)
            sweeps.fire_timers(USING)
            worker.run()
            assert (status(run)[0], row(run).result) == ("complete", ["a", "scan"])
    assert not Timer.objects.filter(status__in=["pending", "stale"]).exists()


def test_a_retry_that_is_due_against_a_migration(worker: LocalWorker, one: Any, clock: Clock) -> None:
    with racers(2) as (left, right):
        for _ in range(ROUNDS // 2):
            run, key = waiting(one, worker)
            does["a"] = factories.failing(1)
            flows.signal(f"e-{key}", "t.raced", key=key)
            worker.run()
            clock.move(seconds=6)
            outcomes = together((left, lambda: flows.migrate(run).answer.value), (right, lambda: sweeps.fire_timers(USING)))
            assert outcomes[0] == "migrated", outcomes
            sweeps.fire_timers(USING)
            worker.run()
            assert (status(run)[0], row(run).flow_version, row(run).result) == ("complete", 2, ["a", "ask"])
    assert faults() == []


# ---------------------------------------------------------------- by the worker that takes it up


def woken(declare: Declare, worker: LocalWorker) -> tuple[Any, Owned]:
    """A run of version 1 in the hands of a worker that has only version 2."""
    name = f"t-wake-{next(keys)}"
    old = version(declare, name, 1, nodes("a", ask=ask("a")))
    key = f"k{next(keys)}"
    run = old.start({}, key=key)
    worker.run()
    unload(old)
    version(declare, name, 2, nodes("scan", "a", ask=ask("scan")), migrate_from={1: {}})
    factories.offer(worker)
    flows.signal(f"e-{key}", "t.raced", key=key)
    taken = registry.taken_up(list(zip(worker.flows, worker.versions, strict=True)))
    worker.flows, worker.versions = [pair[0] for pair in taken], [pair[1] for pair in taken]
    owned = factories.take_one(worker)
    factories.offer(worker)
    assert owned.row.id == run.id
    return run, owned


@pytest.mark.parametrize("verb", ["cancel", "supersede"])
def test_ended_while_a_worker_takes_it_up(worker: LocalWorker, declare: Declare, verb: str) -> None:
    act = {"cancel": flows.cancel, "supersede": lambda run: flows.supersede(run, goal="another")}[verb]
    ended = {"cancel": "cancelled", "supersede": "superseded"}[verb]
    run, owned = woken(declare, worker)
    met = overtaken(lambda: act(run), lambda: turn.work(worker, owned, factories.STAY))
    assert (met.second, met.blocked, status(run)[0], row(run).flow_version) == (Progress.LOST, True, ended, 1)
    run, owned = woken(declare, worker)
    met = overtaken(lambda: turn.work(worker, owned, factories.STAY), lambda: act(run))
    assert (met.first, met.blocked, status(run)[0], row(run).flow_version) == (Progress.LEFT, True, ended, 2)


def test_a_pause_that_is_asked_while_a_worker_takes_it_up(worker: LocalWorker, declare: Declare) -> None:
    run, owned = woken(declare, worker)
    met = overtaken(lambda: flows.pause(run), lambda: turn.work(worker, owned, factories.STAY))
    assert (met.second, met.blocked) == (Progress.LEFT, True)
    assert (status(run)[0], row(run).flow_version) == ("paused", 2)
    run, owned = woken(declare, worker)
    met = overtaken(lambda: turn.work(worker, owned, factories.STAY), lambda: flows.pause(run))
    assert (met.first, met.blocked, status(run)[0]) == (Progress.LEFT, True, "paused")


def test_an_owner_that_was_buried_migrates_nothing(worker: LocalWorker, declare: Declare) -> None:
    run, owned = woken(declare, worker)
    factories.lose(worker)
    assert turn.work(worker, owned, factories.STAY) is Progress.LOST
    assert (row(run).flow_version, log(run)[-1][2]) == (1, "lost")
    factories.another_worker().run()
    assert (status(run)[0], row(run).flow_version) == ("complete", 2)


def test_two_bulk_migrations_share_the_runs(worker: LocalWorker, one: Any) -> None:
    runs = [waiting(one, worker)[0] for _ in range(20)]
    with racers(2) as (left, right):
        both = [lambda: [found.answer.value for found in migrate_many([run.id for run in runs])]] * 2
        outcomes = together((left, both[0]), (right, both[1]))
    answers = Counter(answer for answers in outcomes for answer in answers)
    assert answers["migrated"] == 20
    assert set(answers) <= {"migrated", "already", "busy"}
    assert {row(run).epoch for run in runs} == {1}
    assert connection.in_atomic_block is False
