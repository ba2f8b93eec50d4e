"""Starts by one key from everywhere: one run, and every caller gets it."""

from __future__ import annotations

import pytest
from django.db import transaction

import flows
from flows.models import Intent, Workflow
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, status
from tests.support.races import all_of, overtaken, racers, together

pytestmark = pytest.mark.req("A3")


def test_of_many_starts_by_one_key_one_is_made(transactional_db: None) -> None:
    with racers(4) as threads:
        for number in range(100):
            started = together(*[(racer, lambda number=number: Line.start({"n": number}, key=f"k{number}")) for racer in threads])
            assert len({one.id for one in started}) == 1
            assert sorted(one.created for one in started) == [False, False, False, True]
    assert Workflow.objects.count() == Intent.objects.count() == 100


def test_the_second_start_gets_the_run_of_the_first(worker: LocalWorker) -> None:
    met = overtaken(lambda: Line.start({}, key="k"), lambda: Line.start({}, key="k"))
    assert met.blocked
    assert (met.first.id, met.first.created, met.second.created) == (met.second.id, True, False)


def test_the_second_start_makes_the_run_that_the_first_took_back(worker: LocalWorker) -> None:
    def first() -> None:
        with transaction.atomic():
            Line.start({}, key="k")
            transaction.set_rollback(True)

    met = overtaken(first, lambda: Line.start({}, key="k"))
    assert met.second.created
    assert status(met.second)[0] == "runnable"


def test_of_two_inputs_under_one_key_one_loses(transactional_db: None) -> None:
    with racers(2) as threads:
        for number in range(60):
            outcomes = together(*[
                (racer, lambda number=number, who=who: Line.start({"who": who}, key=f"k{number}")) for who, racer in enumerate(threads)
            ])  # fmt: skip
            assert sorted(type(outcome).__name__ for outcome in outcomes) == ["KeyConflict", "Started"]


def test_bulk_starts_of_the_same_keys_in_any_order_do_not_deadlock(transactional_db: None) -> None:
    keys = [f"k{number}" for number in range(50)]
    orders = [keys, keys[::-1], keys[25:] + keys[:25], sorted(keys, key=lambda key: key[::-1])]
    for _ in range(6):
        started = all_of([lambda order=order: Line.start_many([(key, {}) for key in order]) for order in orders])
        assert not [one for one in started if isinstance(one, Exception)], started
        keys[:] = [f"{key}x" for key in keys]
        orders[:] = [keys, keys[::-1], keys[25:] + keys[:25], sorted(keys, key=lambda key: key[::-1])]
    assert Workflow.objects.count() == 300


def test_a_repeated_bulk_start_beside_verbs_that_lock_by_id_does_not_deadlock(worker: LocalWorker) -> None:
    """The keys sort the other way round than the ids: starts of known keys must not lock in the order of keys alone."""
    with racers(3) as threads:
        for number in range(40):
            keys = [f"{number:03}-{letter}" for letter in "fedcba"]
            first = Ask.start({"key": f"k{number}"}, key=keys[0])
            for key in keys[1:]:
                Ask.start({"key": f"k{number}"}, key=key, intent=first)
            worker.run()
            outcomes = together(
                (threads[0], lambda keys=keys, number=number: Ask.start_many([(key, {"key": f"k{number}"}) for key in keys])),
                (threads[1], lambda number=number: flows.signal(f"e{number}", "t.asked", key=f"k{number}")),
                (threads[2], lambda first=first: flows.supersede(first, goal="x")),
            )
            assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)], outcomes
    factories.forget()
