"""What else may come between the question of a tool and its answer: people, the clock, a lost worker, another version."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import flows
from approvals.tools import requires_approval
from flows import Effect
from flows.models import Notice, Wait
from tests import factories
from tests.support.approving import ROLE, World
from tests.support.tooling import (
    Agent,
    Escalated,
    Hurried,
    asked,
    begin,
    both,
    declare,
    drifts,
    made,
    now,
    outcomes,
    refund,
    statuses,
)

__all__ = ["declare"]

pytestmark = [pytest.mark.req("F6"), pytest.mark.usefixtures("tools")]


# ---------------------------------------------------------------- what comes between


def test_a_cancel_withdraws_the_questions(world: World) -> None:
    run = begin(world, both)
    world.decide(asked(run)[0])
    flows.cancel(run, reason="enough")
    world.worker.run()
    assert (now(run).status, statuses(run)) == ("cancelled", ["invalidated", "cancelled"])
    assert world.decide(asked(run)[1]).code == "WORKFLOW_ENDED"
    assert made == []


def test_another_goal_withdraws_them_and_nothing_is_executed(world: World) -> None:
    run = begin(world, both)
    for request in asked(run):
        world.decide(request)
    assert now(run).status == "runnable"
    flows.supersede(run.intent_id, goal="another")
    world.worker.run()
    assert (now(run).status, made) == ("superseded", [])
    assert statuses(run) == ["invalidated", "invalidated"]


def test_a_pause_holds_the_next_turn(world: World) -> None:
    run = begin(world, lambda attempt: refund(7))
    flows.pause(run)
    assert world.decide(asked(run)[0])
    world.worker.run()
    assert (now(run).status, made) == ("paused", [])
    flows.resume(run)
    world.worker.run()
    assert (now(run).status, made) == ("complete", [(7, "1.00")])
    assert drifts(run) == []


def test_a_pause_that_is_asked_while_the_code_runs_comes_after_the_question(world: World) -> None:
    def pausing(attempt: Any) -> Any:
        if attempt.number == 1:
            flows.pause(attempt.workflow_id)
        return refund(7)

    run = begin(world, pausing)
    assert (now(run).status, statuses(run)) == ("paused", ["pending"])
    world.decide(asked(run)[0])
    assert now(run).status == "paused"
    flows.resume(run)
    world.worker.run()
    assert (now(run).status, made) == ("complete", [(7, "1.00")])
    assert drifts(run) == []


def test_a_resume_before_the_answer_waits_on(world: World) -> None:
    run = begin(world, lambda attempt: refund(7))
    flows.pause(run)
    flows.resume(run)
    world.worker.run()
    assert (now(run).status, statuses(run), outcomes(run)) == ("waiting", ["pending"], ["returned"])
    world.decide(asked(run)[0])
    world.worker.run()
    assert made == [(7, "1.00")]
    assert drifts(run) == []


def test_a_deadline_that_passes_meanwhile_withdraws_them(world: World) -> None:
    run = begin(world, lambda attempt: refund(7), Hurried)
    world.clock.move(hours=4)
    world.worker.tick()
    world.worker.run()
    assert (now(run).status, statuses(run)) == ("failed", ["cancelled"])
    assert drifts(run) == []


def test_a_deadline_that_asks_a_person_and_their_resume_asks_anew(world: World) -> None:
    run = begin(world, lambda attempt: refund(7), Escalated)
    world.clock.move(hours=4)
    world.worker.tick()
    world.worker.run()
    assert (now(run).outcome, statuses(run)) == ("HUMAN_REQUIRED", ["cancelled"])
    flows.resume(run)
    world.worker.run()
    assert statuses(run) == ["cancelled", "pending"]
    assert drifts(run) == []


def test_a_deadline_that_passes_while_the_code_runs_goes_before_the_question(world: World) -> None:
    def slow(attempt: Any) -> Any:
        world.clock.move(hours=4)
        world.worker.tick()
        return refund(7)

    run = begin(world, slow, Hurried)
    assert (now(run).status, asked(run)) == ("failed", [])
    assert drifts(run) == []


def test_the_worker_is_lost_before_the_question_is_asked(world: World) -> None:
    def killed(attempt: Any) -> Any:
        if attempt.number == 1:
            factories.lose(world.worker)
        return refund(7)

    run = begin(world, killed)
    assert (asked(run), outcomes(run)) == ([], ["lost"])
    factories.another_worker().run()
    assert statuses(run) == ["pending"]


def test_the_worker_is_lost_before_the_call_and_nothing_is_used_up(world: World) -> None:
    turns: list[int] = []

    def killed(attempt: Any) -> Any:
        turns.append(attempt.number)
        if attempt.number == 2:
            factories.lose(world.worker)
        return refund(7)

    run = begin(world, killed)
    world.decide(asked(run)[0])
    world.worker.run()
    assert (made, statuses(run)) == ([], ["approved"]), "who has lost the run uses nothing up"
    factories.another_worker().run()
    assert (made, statuses(run), turns) == ([(7, "1.00")], ["consumed"], [1, 2, 3])
    assert drifts(run) == []


def test_the_worker_is_lost_during_the_call(world: World) -> None:
    """Nobody knows whether it happened: the provider is asked before anything else, and it is not called again."""

    def dying(n: int) -> int:
        made.append(n)
        factories.lose(world.worker)
        return n

    tool = requires_approval(role=ROLE, name="dying", effect=Effect(reconcile=lambda op: flows.Happened(11)))(dying)
    run = begin(world, lambda attempt: tool(1))
    world.decide(asked(run)[0])
    world.worker.run()
    factories.another_worker().run()
    assert (now(run).status, now(run).result, made) == ("complete", 1, [1])
    assert drifts(run) == []


def test_a_migration_withdraws_the_questions_and_the_new_version_asks_anew(world: World, declare: Any) -> None:
    run = begin(world, both)
    world.decide(asked(run)[0])
    kept = {name: copy.copy(node) for name, node in Agent.definition.nodes.items()}
    declare("t-tools-agent", meta={"version": 2, "migrate_from": {1: {}}}, **kept)
    assert flows.migrate(run)
    assert statuses(run) == ["invalidated", "cancelled"]
    assert Wait.objects.get(workflow_id=run.pk).status == "withdrawn"
    assert not Notice.objects.filter(code="WORKFLOW_MIGRATED").exclude(user_id=world.robin.pk).exists()
    world.worker.run()
    assert statuses(run) == ["invalidated", "cancelled", "pending", "pending"]
    assert (now(run).flow_version, made) == (2, [])
    assert drifts(run) == []


def test_what_was_executed_stays_executed_after_a_migration(world: World, declare: Any) -> None:
    run = begin(world, lambda attempt: [refund(7), refund(8)])
    world.decide(asked(run)[0])
    world.worker.run()
    kept = {name: copy.copy(node) for name, node in Agent.definition.nodes.items()}
    declare("t-tools-agent", meta={"version": 2, "migrate_from": {1: {}}}, **kept)
    assert flows.migrate(run)
    world.worker.run()
    assert made == [(7, "1.00")]
    assert statuses(run) == ["consumed", "cancelled", "pending"]
