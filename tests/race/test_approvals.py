"""Answers that meet other answers, a cancel, a new goal, and the end of their time: real connections, one winner, a defined loser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections, transaction

import flows
from approvals.api import Decided, decide
from approvals.models import Request, Review
from flows.models import Wait
from flows.store import locks
from tests.support.approving import World, world

__all__ = ["world"]

ROUNDS = 25

#: It forges a used approval behind the record.
STRAYS = {"test_of_two_activities_that_want_one_approval_the_second_loses"}


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Start all calls at the same moment, each on a connection of its own; what they returned, in order."""
    barrier = threading.Barrier(len(calls))

    def one(call: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            barrier.wait(10)
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(60) for future in [pool.submit(one, call) for call in calls]]


def answer(request: Request, by: Any, verdict: str = "approve") -> Callable[[], Decided]:
    return lambda: decide(request.pk, verdict=verdict, digest=request.digest, by=by, comment="Because.")


def until_blocked(pid_of: dict[str, int], name: str) -> None:
    """Wait until the connection of that thread waits for a lock."""
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        with connection.cursor() as cursor:
            cursor.execute("SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", [pid_of.get(name)])
            row = cursor.fetchone()
        if row and row[0] == "Lock":
            return
    raise AssertionError(f"{name} never waited for a lock")


def in_background(call: Callable[[], Any], pid_of: dict[str, int], name: str) -> Future[Any]:
    """Run a call on a thread whose connection can be watched."""
    pool = ThreadPoolExecutor(1)

    def one() -> Any:
        try:
            connection.ensure_connection()
            pid_of[name] = connection.connection.info.backend_pid
            return call()
        finally:
            connections.close_all()

    future = pool.submit(one)
    pool.shutdown(wait=False)
    return future


@pytest.mark.req("F3")
def test_of_two_reviewers_at_once_the_second_loses(world: World) -> None:
    winners = set()
    for _ in range(ROUNDS):
        request = world.ask()
        decided = together(answer(request, world.rita), answer(request, world.ron, "deny"))
        assert sorted(d.code for d in decided) == ["ANSWERED_BEFORE", "accepted"]
        winner = decided.index(next(d for d in decided if d))
        winners.add(winner)
        name, status = (("rita", "approved"), ("ron", "denied"))[winner]
        assert decided[1 - winner].sentence.startswith(f"{name} answered this request first")
        assert world.status(request) == status
        taken = Review.objects.get(request=request, refused="")
        assert (taken.by_label, world.refusals(request)) == (name, ["ANSWERED_BEFORE"])
        assert Wait.objects.get(pk=request.wait_id).evidence["by"] == name
    world.worker.run()


@pytest.mark.req("F3")
def test_of_two_clicks_at_once_the_second_loses_nothing(world: World) -> None:
    for _ in range(ROUNDS):
        request = world.ask()
        decided = together(answer(request, world.rita), answer(request, world.rita))
        assert sorted(d.code for d in decided) == ["accepted", "already"]
        assert Review.objects.filter(request=request).count() == 1


@pytest.mark.req("F3")
def test_the_second_reviewer_waits_for_the_first_and_loses(world: World) -> None:
    request, pids = world.ask(), dict[str, int]()
    with transaction.atomic():
        assert world.decide(request)
        second = in_background(answer(request, world.ron), pids, "ron")
        until_blocked(pids, "ron")
        assert not second.done()
    assert second.result(20).code == "ANSWERED_BEFORE"


@pytest.mark.req("F3", "K1")
@pytest.mark.parametrize("ending", ["cancel", "supersede"])
def test_an_answer_that_meets_the_end_of_its_workflow_never_runs(world: World, ending: str) -> None:
    seen = set()
    for _ in range(ROUNDS):
        request = world.ask()
        end = (
            (lambda run=request.workflow: flows.cancel(run))
            if ending == "cancel"
            else (lambda run=request.workflow: flows.supersede(run, goal="Other news"))
        )
        decided, ended = together(answer(request, world.rita), end)
        assert ended, "the end itself always succeeds"
        seen.add(decided.code)
        if decided:
            assert world.status(request) == "invalidated"
        else:
            assert decided.code == ("WORKFLOW_ENDED" if ending == "cancel" else "INTENT_SUPERSEDED")
            assert world.status(request) == "cancelled"
            assert world.refusals(request) == [decided.code]
        world.worker.run()
        row = world.workflow(request)
        assert row.status == ("cancelled" if ending == "cancel" else "superseded")
        assert row.result is None, "nothing was published"
    assert len(seen) >= 1


@pytest.mark.req("F2", "F3")
def test_an_answer_that_waits_until_its_time_is_over_loses(world: World) -> None:
    request, pids = world.ask(), dict[str, int]()
    late: Future[Decided]
    with transaction.atomic():
        locks.workflows([request.workflow_id], "default")
        late = in_background(answer(request, world.rita), pids, "rita")
        until_blocked(pids, "rita")
        together(lambda: world.clock.move(hours=25))
    assert late.result(20).code == "REQUEST_EXPIRED"
    assert (world.status(request), world.refusals(request)) == ("pending", ["REQUEST_EXPIRED"])
    world.worker.tick()
    world.worker.run()
    assert world.workflow(request).outcome == "HUMAN_REQUIRED"
    assert world.status(request) == "expired"


@pytest.mark.req("F2", "C4")
def test_an_answer_in_time_and_the_sweep_at_the_deadline_agree(world: World) -> None:
    """The clock is moved, the sweep runs, a worker runs and somebody answers, all at once: approved and published, or expired."""
    seen = set()
    for _ in range(ROUNDS):
        request = world.ask()

        def deadline() -> None:
            world.clock.move(hours=24, seconds=1)
            world.worker.tick()

        decided, _ticked = together(answer(request, world.rita), deadline)
        world.worker.run()
        world.worker.tick()
        world.worker.run()
        seen.add(decided.code)
        row = world.workflow(request)
        if decided:
            # Accepted in time. Used in time too, or asked about again: the approval itself has an end.
            assert world.status(request) in ("consumed", "expired")
            assert (row.status, world.status(request)) in (("complete", "consumed"), ("waiting", "expired"))
        else:
            assert (decided.code, world.status(request), row.outcome) == ("REQUEST_EXPIRED", "expired", "HUMAN_REQUIRED")
    assert seen


@pytest.mark.req("F6")
def test_of_two_activities_that_want_one_approval_the_second_loses(world: World) -> None:
    from approvals.services.plane import ApprovalPlane

    plane = ApprovalPlane()
    for _ in range(ROUNDS):
        request = world.ask()
        world.decide(request)
        number = str(request.pk)
        used = together(lambda n=number: plane.use("default", n, 1), lambda n=number: plane.use("default", n, 2))
        assert sorted(used) == [False, True]
        assert Request.objects.get(pk=request.pk).used_by == 1 + used.index(True)


def test_everybody_at_once_keeps_the_lock_order(world: World) -> None:
    """Answers, cancels, new goals, pauses, the sweep and a worker on the same few workflows: nobody meets a deadlock."""
    for _ in range(ROUNDS // 5):
        requests = [world.ask() for _ in range(3)]

        def each(act: Callable[[Request], Any], rows: list[Request] = requests) -> Callable[[], Any]:
            return lambda: [act(row) for row in rows]

        together(
            each(lambda row: answer(row, world.rita)()),
            each(lambda row: answer(row, world.ron, "changes")()),
            each(lambda row: flows.pause(row.workflow_id)),
            each(lambda row: flows.supersede(row.workflow, goal="Other") if row.pk % 2 else flows.cancel(row.workflow)),
            lambda: [world.worker.tick() for _ in range(3)],
            world.worker.run,
        )
        for request in requests:
            assert world.workflow(request).status in ("cancelled", "superseded", "complete", "failed")
