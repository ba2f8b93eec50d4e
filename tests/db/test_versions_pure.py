"""A function of `migrate_from` is pure: what a dry run calls must not get out, and nothing else happens when the run is really migrated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Flow, Migrated, Wait
from flows.models import Event
from flows.services.foresee import foresee
from flows.testing import LocalWorker
from tests import factories
from tests.factories import row
from tests.support.versions import unload, version

pytestmark = pytest.mark.req("G2")

Declare = Callable[..., type[Flow]]
HOUR = Deadline(hours=1, then=ESCALATE)
ASK = {"ask": Wait("t.asked", key="k", deadline=HOUR, then="done"), "done": End(COMPLETE)}
MORE = Activity(factories.work, then="done")


def signals(state: Any) -> Migrated:
    flows.signal("e", "t.other", key="k")
    return Migrated("ask")


def signals_quietly(state: Any) -> Migrated:
    with suppress(BaseException):
        flows.signal("e", "t.other", key="k")
    return Migrated("ask")


@pytest.mark.parametrize("step", [signals, signals_quietly])
@pytest.mark.parametrize("dry_run", [True, False])
def test_what_reaches_out_is_refused_and_named(declare: Declare, worker: LocalWorker, step: Any, *, dry_run: bool) -> None:
    run = version(declare, "t-out", 1, ASK).start({})
    worker.run()
    two = version(declare, "t-out", 2, {**ASK, "more": MORE}, migrate_from={1: step})
    found = flows.migrate(run, dry_run=dry_run)
    assert (found.answer, "asks a database; it must be pure" in found.reason) == ("refused", True)
    assert Event.objects.count() == 0
    assert [one.what for one in next(iter(foresee(two))).problems] == ["migration"]
    assert row(run).flow_version == 1


def test_the_key_of_the_newer_version_too(declare: Declare, worker: LocalWorker) -> None:
    """It is asked for, to see whether the wait can go over."""

    def key(state: Any) -> str:
        flows.signal("e", "t.other", key="k")
        return "k"

    run = version(declare, "t-out", 1, ASK).start({})
    worker.run()
    other = {"ask": Wait("t.asked", key=key, deadline=HOUR, then="done"), "more": MORE, "done": End(COMPLETE)}
    two = version(declare, "t-out", 2, other, migrate_from={1: {}})
    assert "asks a database" in flows.migrate(run, dry_run=True).reason
    assert Event.objects.count() == 0
    assert [one.what for one in next(iter(foresee(two))).problems] == ["outside"]


def test_a_worker_that_takes_the_run_up_suspends_it(declare: Declare, worker: LocalWorker) -> None:
    one = version(declare, "t-out", 1, ASK)
    run = one.start({})
    worker.run()
    version(declare, "t-out", 2, {**ASK, "more": MORE}, migrate_from={1: signals})
    unload(one, worker)
    flows.signal("e1", "t.asked", key="k")
    worker.run()
    assert (row(run).status, row(run).outcome) == ("waiting", "WORKFLOW_MIGRATION_REQUIRED")
    assert set(Event.objects.values_list("event_id", flat=True)) == {"e1"}
