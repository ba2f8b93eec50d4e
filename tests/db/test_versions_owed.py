"""What a run owes to the outside stays owed when it goes on under a newer version, and somebody is still there who can service it."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, Activity, Commits, Deadline, Effect, End, Wait
from flows.models import Commitment, Operation, Timer
from flows.services.servicing import run_servicing
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import calls, does, row, status
from tests.support.obligations import faults
from tests.support.versions import Declare, unload, version

pytestmark = pytest.mark.req("G2", "J1", "B6")

NAME = "t-owing-versions"
HOUR = Deadline(hours=1, then=ESCALATE)

done: list[str] = []


def undo(operation: Any) -> Any:
    done.append(f"undo {operation.node}")
    return {"undone": operation.of.id}


def release(operation: Any) -> Any:
    done.append(f"release {operation.node}")
    return {"released": operation.reference}


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def nodes(pay: str = "pay", *, hold: str = "hold", **more: Any) -> dict[str, Any]:
    """A payment that can be undone, a reservation that is given back, and then a wait."""
    return {
        pay: Activity(factories.work, effect=Effect(compensate=undo), then=hold),
        hold: Activity(
            factories.work, commits=Commits("room", release=release, deadline=Deadline(days=3, then=ESCALATE)), then="ask"
        ),
        "ask": Wait("t.owing", key="k", deadline=HOUR, then="last"),
        "last": Activity(factories.work, then="done"),
        "done": End(COMPLETE),
        **more,
    }


def waiting(worker: LocalWorker, declare: Declare) -> tuple[type[flows.Flow], Any]:
    one = version(declare, NAME, 1, nodes())
    run = one.start({})
    worker.run()
    assert status(run)[0] == "waiting"
    return one, run


def longer() -> dict[str, Any]:
    scan = Activity(factories.work, then="last")
    return nodes(ask=Wait("t.owing", key="k", deadline=HOUR, then="scan"), scan=scan)


def test_what_is_owed_stays_owed(worker: LocalWorker, declare: Declare) -> None:
    one, run = waiting(worker, declare)
    version(declare, NAME, 2, longer(), migrate_from={1: {}})
    unload(one, worker)
    owed = row(run).owed
    assert flows.migrate(run)
    assert (row(run).owed, Commitment.objects.get().status, faults()) == (owed, "active", [])
    flows.signal("e1", "t.owing", key="k")
    worker.run()
    assert (status(run)[0], done) == ("complete", ["release hold"])
    assert [call[0] for call in calls] == ["pay", "hold", "scan", "last"]
    assert faults() == []


def test_a_cancelled_run_is_undone_after_it_was_migrated(worker: LocalWorker, declare: Declare) -> None:
    one, run = waiting(worker, declare)
    version(declare, NAME, 2, longer(), migrate_from={1: {}})
    unload(one, worker)
    assert flows.migrate(run)
    flows.cancel(run)
    worker.run()
    assert (status(run)[0], sorted(done)) == ("cancelled", ["release hold", "undo pay"])


def test_a_commitment_is_breached_at_its_own_time(worker: LocalWorker, declare: Declare, clock: Clock) -> None:
    _, run = waiting(worker, declare)
    long = Wait("t.owing", key="k", deadline=Deadline(days=30, then=ESCALATE), then="last")
    version(declare, NAME, 2, nodes(ask=long), migrate_from={1: {}})
    due = Timer.objects.get(kind="commitment_deadline").due_at
    assert flows.migrate(run)
    assert Timer.objects.get(kind="commitment_deadline").due_at == due
    clock.move(days=4)
    worker.tick()
    assert Commitment.objects.get().status == "breached"


@pytest.mark.parametrize(("renamed", "what"), [({"pay": "charge"}, "/pay/1"), ({"hold": "book"}, "room room")])
def test_nobody_is_left_who_could_undo_or_release(
    worker: LocalWorker, declare: Declare, renamed: dict[str, str], what: str
) -> None:
    one, run = waiting(worker, declare)
    version(declare, NAME, 2, nodes(**renamed), migrate_from={1: {**renamed}})
    found = flows.migrate(run, dry_run=True)
    assert found.answer == "would_migrate"  # version 1 is loaded, and still declares it
    unload(one, worker)
    found = flows.migrate(run)
    assert found.answer == "refused"
    assert what in found.reason
    assert "version 1 loaded" in found.reason
    assert row(run).flow_version == 1


def test_the_older_version_undoes_what_only_it_declares(worker: LocalWorker, declare: Declare) -> None:
    _, run = waiting(worker, declare)
    version(declare, NAME, 2, nodes("charge", hold="book"), migrate_from={1: {"pay": "charge", "hold": "book"}})
    assert flows.migrate(run)
    flows.cancel(run)
    worker.run()
    assert (status(run)[0], sorted(done)) == ("cancelled", ["release hold", "undo pay"])


def test_what_did_not_happen_is_asked_for_by_the_same_name(worker: LocalWorker, declare: Declare) -> None:
    """An effect that is to be tried again keeps its operation id over the migration."""
    one = version(declare, NAME, 1, nodes())
    run = one.start({})
    ids: list[str] = []

    def refuse(attempt: Any) -> Any:
        ids.append(attempt.operation_id)
        raise flows.errors.PolicyDenied

    does["pay"] = refuse
    worker.run()
    assert (status(run)[1], Operation.objects.get().status) == ("POLICY_BLOCKED", "failed")
    version(declare, NAME, 2, longer(), migrate_from={1: {}})
    assert flows.migrate(run)
    assert status(run)[:2] == ("paused", "POLICY_BLOCKED")
    does["pay"] = lambda attempt: ids.append(attempt.operation_id)
    flows.resume(run)
    worker.run()
    assert (status(run)[0], len(ids), len(set(ids))) == ("waiting", 2, 1)
    assert faults() == []


def test_in_doubt_and_on_the_way_to_an_end(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, nodes())
    doubtful, ending = one.start({}), one.start({})
    version(declare, NAME, 2, longer(), migrate_from={1: {}})

    def lose(attempt: Any) -> Any:
        if str(attempt.workflow_id) == str(doubtful.id):
            raise ConnectionResetError
        return {}

    does["pay"] = lose
    worker.run(["agents"])
    assert (status(doubtful)[0], status(ending)[0]) == ("reconciling", "waiting")
    found = flows.migrate(doubtful)
    assert found.answer == "refused"
    assert f"nobody knows whether {doubtful.id}/pay/1 happened" in found.reason
    flows.cancel(ending)
    assert status(ending)[0] == "cancelling"
    found = flows.migrate(ending)
    assert found.answer == "refused"
    assert "on its way to an end" in found.reason
    run_servicing(worker, worker.using)
    worker.run()
    assert (status(ending)[0], row(ending).flow_version) == ("cancelled", 1)
