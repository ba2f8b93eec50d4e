"""A run continues as a new one while somebody signals, cancels or supersedes it, and wherever its worker dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections

import flows
from flows.models import Event, Workflow
from flows.services.owned import Owned
from flows.store import sql
from flows.testing import LocalWorker
from tests import factories
from tests.factories import LET_GO, row, status, take_one
from tests.support.branching import settle
from tests.support.continuing import chain, chaining
from tests.support.races import overtaken, racers, together

pytestmark = pytest.mark.req("G4")

ROUNDS = int(os.environ.get("RACE_ROUNDS", "40"))
USING = "default"
FIRST = {"key": "a"}


@pytest.fixture
def flow(worker: LocalWorker, declare: Any) -> Any:
    return chaining(declare)


def at_its_step(flow: Any, worker: LocalWorker, number: int = 0) -> tuple[Any, Owned]:
    """A run whose step is about to be committed: with that it continues."""
    run = flow.start({"key": f"k{number}"}, key=f"k{number}")
    worker.run()
    flows.signal(f"on{number}", "t.chain", key=f"k{number}", payload={})
    owned = take_one(worker)
    factories.enter(owned)
    return run, owned


def going(owned: Owned) -> Any:
    return lambda: factories.complete(owned, keeping=LET_GO)


def test_an_event_meets_it_and_is_taken_by_the_next_run(worker: LocalWorker, flow: Any) -> None:
    with racers(2) as (one, two):
        for number in range(ROUNDS):
            run, owned = at_its_step(flow, worker, number)
            stop = {"payload": {"say": "stop"}, "key": f"k{number}"}
            together((one, going(owned)), (two, lambda n=number, s=stop: flows.signal(f"s{n}", "t.chain", **s)))
            worker.run()
            assert [each.outcome for each in chain(run)] == ["CONTINUED", "COMPLETE"]
    assert not Event.objects.exclude(status="consumed").exists()


def test_a_cancel_before_it_ends_the_run(worker: LocalWorker, flow: Any) -> None:
    run, owned = at_its_step(flow, worker)
    met = overtaken(lambda: flows.cancel(run), going(owned))
    assert met.blocked
    settle(worker)
    assert (status(run)[0], row(run).key, len(chain(run))) == ("cancelled", "k0", 1)


def test_a_cancel_after_it_is_too_late_for_the_older_run(worker: LocalWorker, flow: Any) -> None:
    run, owned = at_its_step(flow, worker)
    met = overtaken(going(owned), lambda: flows.cancel(run))
    assert (met.blocked, met.second.answer) == (True, "too_late")
    assert [each.status for each in chain(run)] == ["complete", "runnable"]


def test_a_supersede_finds_the_next_run_or_ends_the_older_one(worker: LocalWorker, flow: Any) -> None:
    run, owned = at_its_step(flow, worker, 1)
    met = overtaken(going(owned), lambda: flows.supersede(run, goal="another"))
    assert met.blocked, "the intent is shared until the next run is there"
    assert [each.status for each in chain(run)] == ["complete", "superseded"]
    run, owned = at_its_step(flow, worker, 2)
    met = overtaken(lambda: flows.supersede(run, goal="another"), going(owned))
    assert met.blocked
    assert [each.status for each in chain(run)] == ["superseded"]


def test_a_start_of_the_same_key_waits_and_finds_the_next_run(worker: LocalWorker, flow: Any) -> None:
    run, owned = at_its_step(flow, worker)
    met = overtaken(going(owned), lambda: flow.start({"key": "k0"}, key="k0"))
    assert (met.second.created, met.second.id) == (False, chain(run)[-1].pk)


class Crash(BaseException):
    """The process is gone: nothing of it is caught."""


@contextmanager
def dying_at(number: int, passed: list[str]) -> Iterator[None]:
    def seam(when: str, name: str) -> None:
        passed.append(f"{when} {name}")
        if len(passed) - 1 == number:
            raise Crash

    sql.seam = seam
    try:
        yield
    except Crash:
        connections[USING].close()
    finally:
        sql.seam = None


@pytest.mark.serial
def test_a_crash_at_any_point_leaves_one_run_that_lives(worker: LocalWorker, flow: Any) -> None:
    number, names = 0, set[str]()
    while True:
        run, owned = at_its_step(flow, worker, number)
        passed: list[str] = []
        with dying_at(number, passed):
            going(owned)()
        runs = chain(run)
        assert (len(runs) == 2) == (runs[0].outcome == "CONTINUED")
        assert [each.key for each in runs][-1] == f"k{number}"
        if len(runs) == 1:
            worker = _instead_of(worker)
        flows.signal(f"s{number}", "t.chain", key=f"k{number}", payload={"say": "stop"})
        settle(worker)
        assert [each.outcome for each in chain(run)] == ["CONTINUED", "COMPLETE"]
        names |= {name.partition(" ")[2] for name in passed}
        if len(passed) <= number:
            break
        number += 1
    assert {"hand over", "move", "start", "move on", "continue"} <= names
    assert Workflow.objects.filter(outcome="CONTINUED").count() == number + 1


def _instead_of(worker: LocalWorker) -> LocalWorker:
    """The worker is gone; another one takes over."""
    factories.lose(worker)
    return factories.another_worker()
