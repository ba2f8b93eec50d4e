"""Answers about calls of tools that meet each other, a cancel, the clock, a revocation, another worker: each call is executed once or never."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

import flows
from approvals.api import Decided, decide, revoke
from approvals.tools import agather, gather
from flows.models import Operation, Transition, Wait
from tests import factories
from tests.support.approving import World, world
from tests.support.races import overtaken, racers, together
from tests.support.tooling import asked, begin, drifts, made, now, refund, send, statuses, tools

__all__ = ["tools", "world"]

pytestmark = [pytest.mark.req("F6", "F3", "A3"), pytest.mark.usefixtures("tools")]

ROUNDS = int(os.environ.get("OUTLAST_RACE_ROUNDS", "60"))


def both(attempt: Any) -> Any:
    return gather(lambda: refund(7), lambda: refund(8))


async def one_for_two_hours(attempt: Any) -> Any:
    async def money() -> Any:
        return refund(7)

    return await agather(send("ann"), money())


def one(attempt: Any) -> Any:
    return refund(7)


def answer(request: Any, by: Any, verdict: str = "approve") -> Callable[[], Decided]:
    return lambda: decide(request.pk, verdict=verdict, digest=request.digest, by=by, comment="Because.")


def wakes(run: Any) -> int:
    """How often its log says that answers made it ready."""
    return Transition.objects.filter(workflow_id=run.pk, trigger="approval").count()


def test_two_answers_to_two_calls_at_once_wake_once(world: World) -> None:
    with racers(2) as (first, second):
        for number in range(ROUNDS):
            run = begin(world, both, key=f"two-{number}")
            seven, eight = asked(run)
            met = together((first, answer(seven, world.rita)), (second, answer(eight, world.ron)))
            assert [found.code for found in met] == ["accepted", "accepted"]
            assert (now(run).status, wakes(run)) == ("runnable", 1)
            assert Wait.objects.get(pk=seven.wait_id).status == "satisfied"
            made.clear()
            world.worker.run()
            assert made == [(7, "1.00"), (8, "1.00")]
            assert (now(run).status, statuses(run)) == ("complete", ["consumed", "consumed"])
    assert drifts(run) == []


def test_the_second_answer_waits_for_the_first_and_sees_that_it_is_the_last(world: World) -> None:
    run = begin(world, both)
    seven, eight = asked(run)
    met = overtaken(answer(seven, world.rita), answer(eight, world.ron))
    assert met.blocked
    assert (met.first.code, met.second.code, now(run).status) == ("accepted", "accepted", "runnable")


@pytest.mark.parametrize("ending", ["cancel", "supersede"])
def test_an_answer_that_meets_the_end_of_its_workflow_executes_nothing(world: World, ending: str) -> None:
    seen = set()
    with racers(2) as (first, second):
        for number in range(ROUNDS // 2):
            run = begin(world, one, key=f"{ending}-{number}")
            (request,) = asked(run)
            ends = {"cancel": lambda r=run: flows.cancel(r), "supersede": lambda r=run: flows.supersede(r.intent_id, goal="x")}[
                ending
            ]
            met = together((first, answer(request, world.rita)), (second, ends))
            seen.add(met[0].code)
            world.worker.run()
            assert made == []
            assert (now(run).status in ("cancelled", "superseded"), statuses(run)[0] in ("cancelled", "invalidated")) == (
                True,
                True,
            )
    assert seen <= {"accepted", "WORKFLOW_ENDED", "INTENT_SUPERSEDED", "REQUEST_CANCELLED"}


def test_a_revocation_that_meets_the_use_takes_it_back_or_is_too_late(world: World) -> None:
    seen = set()
    with racers(2) as (first, second):
        for number in range(ROUNDS):
            run = begin(world, one, key=f"revoke-{number}")
            (request,) = asked(run)
            world.decide(request)
            made.clear()
            met = together(
                (first, lambda: world.worker.run()), (second, lambda r=request: revoke(r, reason="A slip.", by=world.rita))
            )
            world.worker.run()  # a claim passes over what another holds at that moment
            code = met[1].code
            seen.add(code)
            expected = {
                "TOO_LATE": ([(7, "1.00")], ["consumed"], "complete"),
                "accepted": ([], ["revoked", "pending"], "waiting"),
            }
            assert (made, statuses(run), now(run).status) == expected[code]
            flows.cancel(run)
            world.worker.run()
    assert seen <= {"TOO_LATE", "accepted"}


def test_an_answer_that_meets_the_end_of_the_time_of_another_wakes_once(world: World) -> None:
    with racers(2) as (first, second):
        for number in range(ROUNDS // 2):
            run = begin(world, one_for_two_hours, key=f"over-{number}")
            _mail, money = asked(run)
            world.clock.move(hours=3)
            met = together((first, answer(money, world.rita)), (second, world.worker.tick))
            assert met[0].code == "accepted"
            world.worker.tick()  # what another held was left to the next sweep
            assert (now(run).status, wakes(run), statuses(run)) == ("runnable", 1, ["expired", "approved"])
            flows.cancel(run)
            world.worker.run()


def test_two_workers_execute_it_once(world: World) -> None:
    other = factories.another_worker()
    with racers(2) as (first, second):
        for number in range(ROUNDS):
            run = begin(world, one, key=f"workers-{number}")
            world.decide(asked(run)[0])
            made.clear()
            together((first, lambda: world.worker.run()), (second, lambda: other.run()))
            assert made == [(7, "1.00")]
            assert (now(run).status, statuses(run)) == ("complete", ["consumed"])
            assert Operation.objects.get(workflow_id=run.pk).status == "succeeded"


def test_who_has_lost_the_run_while_its_tool_is_asked_about_uses_nothing_up(world: World) -> None:
    """The old owner comes to its call when the new one has made it."""
    ours = world.worker

    def slow(attempt: Any) -> Any:
        if attempt.number == 2:
            factories.lose(ours)
            with racers(1) as (newer,):
                newer.do(lambda: factories.another_worker().run()).result(30)
        return refund(7)

    run = begin(world, slow)
    world.decide(asked(run)[0])
    ours.run()
    assert made == [(7, "1.00")]
    assert (now(run).status, statuses(run)) == ("complete", ["consumed"])
    assert drifts(run) == []
