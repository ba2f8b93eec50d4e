"""The checks that look at the database: its clock, and the live runs of what is (or was) declared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core import checks as django_checks
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.db import OperationalError, ProgrammingError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder

import flows
from flows import COMPLETE, ESCALATE, Activity, Deadline, End, Wait, checks, policies
from flows.checks import database
from flows.models import Workflow
from flows.store import faults
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


# ---------------------------------------------------------------- what is not there


def test_tables_that_are_not_there_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.check_migrated(databases=["default"]) == []
    newest = max(name for app, name in MigrationRecorder(connection).applied_migrations() if app == "outlast_flows")
    MigrationRecorder(connection).record_unapplied("outlast_flows", newest)
    try:
        (message,) = checks.check_migrated(databases=["default"])
        assert (message.id, message.level) == ("outlast_flows.W105", django_checks.WARNING)
        assert f"outlast_flows.{newest} not applied" in message.msg
        assert "manage.py migrate" in str(message.hint)
        monkeypatch.setattr(database, "pending", lambda _alias: [f"outlast_flows.{number}" for number in range(5)])
        (message,) = checks.check_migrated(databases=["default"])
        assert "outlast_flows.2 and 2 more not applied" in message.msg
        monkeypatch.undo()
        assert checks.check_versions(databases=["default"]) == checks.check_named(databases=["default"]) == []
    finally:
        MigrationRecorder(connection).record_applied("outlast_flows", newest)
    assert checks.check_migrated(databases=[]) == checks.check_migrated() == []


@contextmanager
def without_tables() -> Iterator[None]:
    """The record as it is before `migrate`."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path TO pg_catalog")
        yield
        transaction.set_rollback(True)


def test_a_command_says_so_in_one_sentence() -> None:
    with (
        without_tables(),
        pytest.raises(CommandError, match=r"^The tables of Outlast are not in database 'default' as this code needs them \(rel"),
    ):
        call_command("flows", "list")


def test_so_does_a_worker() -> None:
    with without_tables(), pytest.raises(ProgrammingError) as caught:
        Workflow.objects.exists()
    said = faults.sentence(caught.value, "default")
    assert said.endswith('(relation "outlast_workflow" does not exist): run `manage.py migrate`')
    assert faults.sentence(OperationalError("gone\nand more"), "default") == "the database is away (gone)"


def named(declare: Declare, **meta: Any) -> list[tuple[str, str, str]]:
    nodes = {
        "propose": flows.Decision(factories.work, choices={"go": "ask"}),
        "ask": flows.Approval(
            candidate="propose",
            role="t-editors",
            expires=Deadline(hours=1, then=ESCALATE, escalate_to=("t-duty", "shop.hear_of_it")),
            approved="act",
            denied="done",
        ),
        "act": Activity(factories.work, gate=flows.Gate(approved_by="ask", authority="shop.publish_news"), then="done"),
        "done": End(COMPLETE),
    }
    one = version(declare, NAME, 1, nodes, **meta)
    found = checks.check_named(databases=["default"])
    return [(str(m.id)[-4:], str(m.msg), str(m.hint)) for m in found if m.obj == one.definition.where or NAME in str(m.msg)]


@pytest.mark.req("F1")
def test_what_a_flow_names_and_nobody_has_made_is_said(declare: Declare) -> None:
    found = named(declare, policy="t-chnages")
    there = "of that name in database 'default'."
    assert [(code, message) for code, message, _ in found] == [
        ("W106", "Meta.policy of t-checked is 't-chnages', of which nothing is published: its runs are bound to version 0."),
        ("W107", f"t-checked, node 'ask': role is 't-editors', and there is no group {there}"),
        ("W107", f"t-checked, node 'act': authority is 'shop.publish_news', and there is no permission {there}"),
        ("W107", f"t-checked, Node 'ask', expires: escalate_to is 't-duty', and there is no group {there}"),
        ("W107", f"t-checked, Node 'ask', expires: escalate_to is 'shop.hear_of_it', and there is no permission {there}"),
    ]


@pytest.mark.req("F1")
def test_what_is_there_is_not_said_and_what_is_near_is_named(declare: Declare, settings: Any) -> None:
    groups = [Group.objects.create(name=name) for name in ("t-editors", "t-duty")]
    policies.publish("t-changes", {})
    publish = Permission.objects.create(
        codename="publish_news", name="x", content_type=ContentType.objects.create(app_label="shop", model="news")
    )
    settings.OUTLAST = {**settings.OUTLAST, "ESCALATE_TO": ["t-dutty"]}
    try:
        assert [code for code, *_ in named(declare, policy="t-changes")] == ["W107"], "shop.hear_of_it"
        assert [hint for *_, hint in named(declare, policy="t-change") if "t-changes" in hint] == ["Did you mean 't-changes'?"]
        own = [
            str(m.hint)
            for m in checks.check_named(databases=["default"])
            if str(m.msg).startswith("settings.OUTLAST: ESCALATE_TO")
        ]
        assert own == ["Did you mean 't-duty'?"]
    finally:
        publish.content_type.delete()
        for group in groups:
            group.delete()


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
        assert ("flows are found in <app>/flows.py" in hint) is not newer
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
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []
    unload(one)
    lifecycle._tell_of_definitions()
    (message,) = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert message.startswith(
        "1 live run of t-checked@1 (only) needs version 1, which is not loaded. Keep the class of version 1"
    )


def test_a_worker_says_which_policies_nobody_has_published(declare: Declare, caplog: pytest.LogCaptureFixture) -> None:
    version(declare, NAME, 1, nodes("a"), policy="t-chnages")
    lifecycle._tell_of_definitions()
    (said,) = [one for one in caplog.messages if "t-chnages" in one]
    assert said.startswith(
        "Meta.policy of t-checked is 't-chnages', of which nothing is published: its runs are bound to version 0. "
    )
    assert said.endswith("manage.py flows policy publish t-chnages …, or correct the name.")
