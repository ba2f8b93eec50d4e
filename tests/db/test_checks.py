"""The checks that look at the database: its clock, and the live runs of what is (or was) declared."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Wait, checks
from flows.testing import Clock, LocalWorker
from tasks import lifecycle
from tests import factories
from tests.support.versions import Declare, unload, version

NAME = "t-checked"

#: The definition is changed without a new version.
STRAYS = {"test_a_definition_that_changed_under_live_runs", "test_with_at_wake_a_changed_definition_is_left_behind"}


def test_the_plain_clock_is_sound() -> None:
    assert checks.check_clock(databases=["default"]) == []


@pytest.mark.req("C3")
def test_a_clock_that_the_test_kit_moves_is_reported(clock: Clock) -> None:
    (message,) = checks.check_clock(databases=["default"])
    assert message.id == "outlast_flows.W103"
    assert "business time may be moved" in message.msg


# ---------------------------------------------------------------- live runs of what is (or was) declared


def nodes(*names: str) -> dict[str, Any]:
    made = {name: Activity(factories.work, then=after) for name, after in zip(names, [*names[1:], "done"], strict=True)}
    return {
        "ask": Wait("t.checked", key="k", deadline=Deadline(hours=1, then=ESCALATE), then=names[0]),
        **made,
        "done": End(COMPLETE),
    }


def found() -> list[tuple[str, str, str]]:
    messages = checks.check_versions(databases=["default"])
    assert all(message.hint for message in messages)
    return [(str(message.id), str(message.msg), str(message.hint)) for message in messages]


@pytest.mark.req("G2")
def test_runs_of_what_is_loaded_are_sound(worker: LocalWorker, declare: Declare) -> None:
    version(declare, NAME, 1, nodes("a")).start({})
    version(declare, NAME, 2, nodes("a", "b")).start({})
    assert found() == []
    assert checks.check_versions(databases=[]) == checks.check_versions() == []


@pytest.mark.req("G2")
def test_a_definition_that_changed_under_live_runs(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, nodes("a"))
    runs = [one.start({}, key=f"run-{number}") for number in range(5)]
    worker.run()
    unload(one)
    version(declare, NAME, 1, nodes("a", "b"))
    ((code, message, hint),) = found()
    assert code == "outlast_flows.E121"
    assert message.startswith("5 live runs of t-checked@1 (run-0, run-1, run-2, …) began with another shape of it: fingerprint ")
    assert hint == "Raise Meta.version and write migrate_from = {1: …}, or put the old shape of version 1 back."
    two = version(declare, NAME, 2, nodes("a", "b", "c"), migrate_from={1: {}})
    assert found()[0][2].startswith("`manage.py flows migrate --flow t-checked --from 1`")
    unload(two)
    for run in runs:
        flows.cancel(run)
    assert found() == []


@pytest.mark.req("G2")
def test_with_at_wake_a_changed_definition_is_left_behind(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, nodes("a"))
    one.start({})
    unload(one)
    version(declare, NAME, 1, nodes("a", "b"))
    version(declare, NAME, 2, nodes("a", "b", "c"), migrate_from={1: {}}, migrate="at_wake")
    assert found() == []


@pytest.mark.req("G2")
def test_a_version_that_was_removed_under_live_runs(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, nodes("a"))
    run = one.start({}, key="only")
    unload(one)
    for newer in (False, True):
        if newer:
            two = version(declare, NAME, 2, nodes("a", "b"))
        ((code, message, hint),) = found()
        assert (code, message) == ("outlast_flows.E122", "1 live run of t-checked@1 (only) needs version 1, which is not loaded.")
        assert "Keep the class of version 1" in hint
        assert "migrate_from = {1: …}" in hint
    unload(two)
    version(declare, NAME, 2, nodes("a", "b"), migrate_from={1: {}})
    assert found() == []
    flows.cancel(run)


@pytest.mark.req("G2")
def test_runs_on_their_way_to_an_end_need_their_own_version(worker: LocalWorker, declare: Declare) -> None:
    def undo(operation: Any) -> None: ...

    work = Activity(factories.work, effect=flows.Effect(compensate=undo), then="ask")
    one = version(declare, NAME, 1, {"pay": work, **nodes("a")})
    run = one.start({}, key="owing")
    worker.run()
    flows.cancel(run)
    unload(one)
    version(declare, NAME, 2, {"pay": work, **nodes("a", "b")}, migrate_from={1: {}})
    ((code, message, hint),) = found()
    assert code == "outlast_flows.E122"
    assert "services what it owes on the way to an end, as only version 1 declares" in message
    assert hint == "Keep the class of version 1 beside the newer one until they have ended."


@pytest.mark.req("G2")
def test_check_says_so_on_the_command_line(worker: LocalWorker, declare: Declare) -> None:
    one = version(declare, NAME, 1, nodes("a"))
    one.start({}, key="only")
    unload(one)
    with pytest.raises(SystemCheckError, match=r"outlast_flows\.E122"):
        call_command("check", databases=["default"])
    ours = ("outlast_flows", "outlast_approvals", "outlast_tasks")
    call_command("check", *ours)  # without the database, and without the flows of other tests


@pytest.mark.req("G2")
def test_a_worker_says_so_when_it_starts(worker: LocalWorker, declare: Declare, caplog: pytest.LogCaptureFixture) -> None:
    one = version(declare, NAME, 1, nodes("a"))
    one.start({}, key="only")
    lifecycle._tell_of_definitions()
    assert caplog.messages == []
    unload(one)
    lifecycle._tell_of_definitions()
    (message,) = caplog.messages
    assert message.startswith(
        "1 live run of t-checked@1 (only) needs version 1, which is not loaded. Keep the class of version 1"
    )


def test_before_the_first_migrate_nothing_is_looked_at(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "RECORD", "SELECT to_regclass('no_such_table')")
    with connection.cursor():
        assert checks.check_versions(databases=["default"]) == []
