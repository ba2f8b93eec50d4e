"""The journal meets a cancel, a recovery, a raise of the budget: one owner writes, and what it wrote before stays."""

from __future__ import annotations

import os
from typing import Any

import pytest

import flows
from flows import COMPLETE, AgentTurn, Budget, End, Spend
from flows import budgets as verbs
from flows.core.errors import LostOwnership
from flows.models import JournalEntry
from flows.testing import LocalWorker
from tests import factories
from tests.factories import another_worker, person, row, status
from tests.support.budgeting import amounts
from tests.support.races import racers, together
from tests.support.turning import Turn, entries, go, says

pytestmark = pytest.mark.req("A3", "O1", "N1")

ROUNDS = int(os.environ.get("OUTLAST_RACE_ROUNDS", "25"))


def test_a_cancel_and_a_call_one_of_them_is_first(worker: LocalWorker) -> None:
    """Either the call is on record and paid, or nothing of it is; a cancelled run has nothing set aside."""
    with racers(2) as (first, second):
        for number in range(ROUNDS):

            def code(attempt: Any) -> Any:
                def call() -> Any:
                    return attempt.journal.model("ask", says("yes"))

                _cancelled, answer = together((first, lambda: flows.cancel(run)), (second, call))
                if isinstance(answer, Exception):
                    assert isinstance(answer, LostOwnership), answer
                    raise answer
                return go()

            factories.does["think"] = code
            run = Turn.start({}, key=f"cancel-{number}")
            worker.run()
            found = entries(run)
            assert status(run)[0] in ("cancelled", "complete")
            assert [one[3] for one in found] in ([], ["begun"], ["done"]), found
            if found:
                assert amounts(run, "model_tokens")[1] == 0, "nothing stays set aside"
                assert amounts(run, "model_tokens")[0] in (15, 100)


def test_an_owner_that_was_put_back_and_its_heir_record_one_answer(worker: LocalWorker) -> None:
    """The record of the old attempt and the recovery at once: its answer is used, or it is dropped and the call made anew, never both."""
    with racers(2) as (first, second):
        for number in range(ROUNDS):
            owner, heir = another_worker(), another_worker()

            def code(attempt: Any) -> Any:
                journal = attempt.journal
                if attempt.number > 1:
                    return go(journal.model("ask", says(attempt.number)))

                def raced() -> Any:
                    return journal.model("ask", lambda: "first")

                _lost, answer = together((first, lambda: factories.lose(owner)), (second, raced))
                if isinstance(answer, Exception):
                    assert isinstance(answer, LostOwnership), answer
                    raise answer
                return go(answer)

            factories.does["think"] = code
            run = Turn.start({}, key=f"heir-{number}")
            owner.run()
            heir.run()
            assert status(run)[0] == "complete"
            found = entries(run)
            assert sum(one[3] == "done" for one in found) == 1, found
            assert amounts(run, "model_tokens")[1] == 0
            done = JournalEntry.objects.get(workflow_id=run.id, status="done")
            assert row(run).result == done.answer
            heir.stop()
            owner.incarnation = None


def test_a_raise_and_a_call_without_room_meet_and_the_turn_goes_on(worker: LocalWorker, declare: Any) -> None:
    """The raise is seen by the call, by the refusal, or it finds the suspension: the run is never left waiting with room."""
    flow = declare(
        "t-turn-raise",
        meta={"budget": Budget(model_tokens=100)},
        think=AgentTurn(factories.work, choices={"go": "done"}, each=Spend(model_tokens=100)),
        done=End(COMPLETE),
    )
    ann = person("ann")
    ann.is_superuser = True
    ann.save()
    with racers(1) as (first,):
        for number in range(ROUNDS):
            raised: list[Any] = []

            def code(attempt: Any) -> Any:
                attempt.journal.model("ask", says(1, input_tokens=95))
                if not raised:
                    raised.append(first.do(lambda: verbs.raise_(run, "model_tokens", by_amount=100, by=ann, reason="More")))
                attempt.journal.model("ask", says(2, input_tokens=95))
                return go()

            factories.does["think"] = code
            run = flow.start({}, key=f"raise-{number}", by=ann)
            worker.run()
            assert raised[0].result(timeout=60)
            worker.run()
            assert status(run)[0] == "complete"
            assert amounts(run, "model_tokens") == (200, 0)
            assert [one[3] for one in entries(run)] == ["done", "done"]
