"""Calendars in the record: published in versions, counted by where a flow waits, and never moving a wait that is open."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

import flows
from flows import (
    COMPLETE,
    ESCALATE,
    FAIL,
    Activity,
    Ask,
    Commits,
    Deadline,
    End,
    Field,
    Flow,
    Map,
    On,
    Servicing,
    Sleep,
    Wait,
    Window,
)
from flows import calendars as faces
from flows.checks import check_named
from flows.core.calendars import parse
from flows.errors import DefinitionError, NotPermitted, PayloadError, ReasonMissing
from flows.models import Calendar, Commitment, Timer, Transition
from flows.models import Wait as WaitRow
from flows.services import clock as durable
from flows.services.migrate import migrate
from flows.services.replay import replay
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import row, status
from tests.support.versions import version

pytestmark = pytest.mark.req("C7")

Declare = Callable[..., type[Flow]]
USING = "default"
HOURS = [f"{hour:02}:00-{hour:02}:30" for hour in range(24)]
#: Open in the first half of every hour.
HALVES = {"zone": "UTC", "week": dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), HOURS)}
SHUT = {"zone": "UTC", "week": {}}


def sleeping(declare: Declare, **options: Any) -> type[Flow]:
    return declare("t-cal", nap=Sleep(**options, then="done"), done=End(COMPLETE))


def due() -> datetime:
    found: datetime = Timer.objects.get(
        kind__in=("sleep", "wait_deadline", "sla", "workflow_deadline", "commitment_deadline")
    ).due_at
    return found


def test_versions_are_added_and_the_same_again_is_none() -> None:
    assert faces.publish("halves", HALVES).version == 1
    again = faces.publish("halves", HALVES)
    assert (again.version, again.created) == (1, False)
    assert faces.publish("halves", SHUT, after=1).version == 2
    with pytest.raises(faces.CalendarMoved, match="is 2 by now, not 1"):
        faces.publish("halves", HALVES, after=1)
    assert list(Calendar.objects.order_by("version").values_list("version", "body")) == [(1, HALVES), (2, SHUT)]
    for change in ("UPDATE outlast_calendar SET version = 7", "DELETE FROM outlast_calendar", "TRUNCATE outlast_calendar"):
        if change.startswith("TRUNCATE"):
            continue  # of a test database it is Django's own flush
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(change)


def test_what_cannot_be_a_calendar_is_refused() -> None:
    with pytest.raises(DefinitionError, match="There is no time zone"):
        faces.publish("x", {"zone": "Mars/Olympus", "week": {}})
    with pytest.raises(PayloadError, match="no @ in it"):
        faces.publish("x@1", HALVES)
    assert not Calendar.objects.exists()


def test_a_user_needs_the_right_and_says_why() -> None:
    rita = get_user_model().objects.create_user("rita")
    with pytest.raises(NotPermitted):
        faces.publish("halves", HALVES, by=rita, reason="we moved")
    rita.user_permissions.add(Permission.objects.get(codename="publish_calendar"))
    with pytest.raises(ReasonMissing):
        faces.publish("halves", HALVES, by=rita)
    faces.publish("halves", HALVES, by=rita, reason="we moved")
    assert Calendar.objects.values_list("by_label", "reason").get() == ("rita", "we moved")


def test_a_sleep_until_a_window_wakes_as_it_opens(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    faces.publish("halves", HALVES)
    now = durable.now(USING)
    clock.move(minutes=45 - now.minute)  # closed
    run = sleeping(declare, until=Window("halves")).start({})
    before = durable.now(USING)
    worker.run()
    assert status(run) == ("waiting", "WAITING", "nap")
    opens = (before + timedelta(hours=1)).replace(minute=0, second=0, microsecond=0)
    assert due() == opens
    note = Transition.objects.get(workflow_id=row(run).pk, to_status="waiting").note
    assert note["calendar"] == ["halves@1"]
    faces.publish("halves", SHUT)  # a later version moves no wait that is open
    assert due() == opens
    clock.move(minutes=20)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"
    (replayed,) = replay([run.id])
    assert replayed.drift is None and replayed.decided > 0


def test_an_open_window_is_no_wait_for_long(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    faces.publish("halves", HALVES)
    clock.move(minutes=5 - durable.now(USING).minute)
    run = sleeping(declare, until=Window("halves")).start({})
    worker.run()
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"


def test_a_sleep_of_business_time(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    faces.publish("halves", HALVES)
    clock.move(minutes=45 - durable.now(USING).minute)
    sleeping(declare, business=timedelta(minutes=40), calendar="halves").start({})
    hour = durable.now(USING).replace(minute=0, second=0, microsecond=0)
    worker.run()
    assert due() == hour + timedelta(hours=2, minutes=10)


@pytest.mark.parametrize(("body", "said"), [(None, "publish it"), (SHUT, "no window within two years")])
def test_what_cannot_be_counted_by_asks_a_person(
    worker: LocalWorker, clock: Clock, declare: Declare, caplog: pytest.LogCaptureFixture, body: Any, said: str
) -> None:
    if body is not None:
        faces.publish("halves", body)
    run = sleeping(declare, until=Window("halves")).start({})
    worker.run()
    assert (row(run).status, row(run).error_code) == ("waiting", "DEFINITION_FAULT")
    assert said in caplog.text
    faces.publish("halves", HALVES)
    flows.resume(run)
    worker.run()
    clock.move(hours=1)
    worker.tick()
    worker.run()
    assert status(run)[0] == "complete"


BUSINESS = Deadline(business=timedelta(hours=1), calendar="halves", then=FAIL)
WAITING = {
    "event": lambda: Wait("t.cal", key="k", deadline=BUSINESS, then="done"),
    "several": lambda: Wait(all=[On("t.cal", key="a"), On("t.cal", key="b")], deadline=BUSINESS, then="done"),
    "children": lambda: Map(lambda state: [1], do=nothing, queue="nobody", deadline=BUSINESS, then="done"),
}


def nothing(attempt: Any) -> None:
    """Nobody serves its queue."""


@pytest.mark.parametrize("kind", WAITING)
def test_the_deadline_of_a_wait_in_business_time(worker: LocalWorker, clock: Clock, declare: Declare, kind: str) -> None:
    faces.publish("halves", HALVES)
    clock.move(minutes=45 - durable.now(USING).minute)
    flow = declare("t-cal-wait", wait=WAITING[kind](), done=End(COMPLETE))
    run = flow.start({})
    hour = durable.now(USING).replace(minute=0, second=0, microsecond=0)
    worker.run()
    assert WaitRow.objects.get().deadline_at == due() == hour + timedelta(hours=2, minutes=30)
    clock.move(hours=1)
    worker.tick()
    worker.run()
    assert status(run)[0] == "waiting"
    clock.move(hours=1)
    worker.tick()
    worker.run()
    assert (row(run).status, row(run).error_code) == ("failed", "WAIT_EXPIRED")


def test_a_question_and_a_flow_may_have_business_time_too(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    faces.publish("halves", HALVES)
    clock.move(minutes=45 - durable.now(USING).minute)
    deadline = Deadline(business=timedelta(minutes=30), calendar="halves", then=ESCALATE)
    ask = Ask([Field("amount", kind="integer")], role="finance", deadline=deadline, then="done")
    flow = declare("t-cal-ask", meta={"deadline": deadline, "sla": deadline}, ask=ask, done=End(COMPLETE))
    get_user_model().objects.create_user("fin").groups.create(name="finance")
    flow.start({})
    end = durable.now(USING).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1, minutes=30)
    worker.run()
    found = dict(Timer.objects.values_list("kind", "due_at"))
    assert abs(found["workflow_deadline"] - end) < timedelta(seconds=1)
    assert abs(found["sla"] - end) < timedelta(seconds=1)
    assert found["wait_deadline"] == end


def test_a_run_is_not_started_by_a_calendar_that_nobody_has_published(declare: Declare) -> None:
    deadline = Deadline(business=timedelta(minutes=30), calendar="nowhere", then=ESCALATE)
    flow = declare("t-cal-not", meta={"deadline": deadline}, wait=Sleep(timedelta(1), then="done"), done=End(COMPLETE))
    with pytest.raises(DefinitionError, match="There is no calendar 'nowhere'"):
        flow.start({})


def held(operation: Any) -> Any:
    return {"released": operation.reference}


@pytest.mark.parametrize("body", [HALVES, None])
def test_a_commitment_is_owed_in_business_time_and_never_hidden(
    worker: LocalWorker, clock: Clock, declare: Declare, body: Any
) -> None:
    if body is not None:
        faces.publish("halves", body)
    clock.move(minutes=45 - durable.now(USING).minute)
    deadline = Deadline(business=timedelta(minutes=30), calendar="halves", then=ESCALATE)
    commits = Commits("window", release=Servicing(held, idempotent=True), deadline=deadline)
    flow = declare(
        "t-cal-held",
        hold=Activity(factories.work, commits=commits, then="nap"),
        nap=Sleep(timedelta(days=9), then="done"),
        done=End(COMPLETE),
    )
    flow.start({})
    hour = durable.now(USING).replace(minute=0, second=0, microsecond=0)
    worker.run()
    owed = Commitment.objects.get()
    assert owed.deadline_at is not None
    wanted = hour + timedelta(hours=1, minutes=30) if body else hour + timedelta(hours=1, minutes=15)
    assert abs(owed.deadline_at - wanted) < timedelta(minutes=1)
    assert owed.reason == ("" if body else "DEADLINE_FAILED")


def test_a_migration_knows_the_calendars_of_the_new_version(worker: LocalWorker, clock: Clock, declare: Declare) -> None:
    faces.publish("halves", HALVES)
    run = declare("t-cal-two", nap=Sleep(timedelta(days=1), then="done"), done=End(COMPLETE)).start({})
    worker.run()
    nodes = {"nap": Sleep(until=Window("halves"), then="done"), "done": End(COMPLETE)}
    version(declare, "t-cal-two", 2, nodes, migrate_from={1: {}})
    before = due()
    assert migrate(run, reason="hours", to=2)
    assert (due(), row(run).flow_version) == (before, 2)


def test_who_counts_by_a_calendar_that_is_not_there_is_warned(declare: Declare) -> None:
    sleeping(declare, until=Window("halvse"))
    faces.publish("halves", HALVES)
    (message,) = (one for one in check_named(databases=[USING]) if one.id == "outlast_flows.W116")
    assert "'halvse'" in message.msg
    assert message.hint == "Did you mean 'halves'?"


def test_the_command(tmp_path: Path) -> None:
    rita = get_user_model().objects.create_user("rita")
    rita.user_permissions.add(Permission.objects.get(codename="publish_calendar"))
    file = tmp_path / "halves.json"
    file.write_text(json.dumps(HALVES))
    out = io.StringIO()
    call_command(
        "flows", "calendars", "publish", "halves", body=str(file), reason="first", by="rita", stdout=out, stderr=io.StringIO()
    )
    assert "halves@1" in out.getvalue()
    out = io.StringIO()
    call_command("flows", "calendars", "list", "--json", stdout=out, stderr=io.StringIO())
    (listed,) = json.loads(out.getvalue())
    assert (listed["name"], listed["zone"], listed["by"], listed["body"]) == ("halves", "UTC", "rita", HALVES)
    file.write_text('{"zone": "UTC", "week": {"mon": ["x"]}}')
    with pytest.raises(CommandError, match="no window such as"):
        call_command("flows", "calendars", "publish", "halves", body=str(file), reason="worse", by="rita", stderr=io.StringIO())


def test_a_calendar_whose_zone_is_gone_is_not_there(
    worker: LocalWorker, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"zone": "Mars/Olympus", "week": {}}
    Calendar.objects.create(name="mars", version=1, body=body, digest="x", at=datetime(2026, 1, 1, tzinfo=UTC))
    run = sleeping(declare, until=Window("mars")).start({})
    worker.run()
    assert row(run).error_code == "DEFINITION_FAULT"
    with pytest.raises(DefinitionError):
        parse(body)
