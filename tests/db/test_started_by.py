"""Runs that begin with an event: one for its key, for the user whom the flow names, and never more than evidence."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command

import flows
from flows import COMPLETE, Activity, End, StartedBy, registry
from flows.checks import check_started_by
from flows.models import Event, Workflow
from flows.services import events
from flows.testing import LocalWorker
from tests import factories
from tests.factories import status
from tests.support.versions import version

pytestmark = pytest.mark.req("D4")


@pytest.fixture
def user() -> Any:
    return factories.person("t-ops")


@pytest.fixture
def begun(declare: Any, user: Any) -> Any:
    """Of how it begins, a flow."""

    def made(number: int = 1, name: str = "t-begun", **options: Any) -> Any:
        given = {"key": lambda event: event["payload"]["order"], "user": "t-ops", **options}
        nodes = {"one": Activity(factories.work, then="done"), "done": End(COMPLETE, result=lambda state: dict(state.input))}
        return version(declare, name, number, nodes, started_by=StartedBy("t.order", **given))

    return made


def send(event_id: str = "e1", order: str = "o1", key: str = "k", **more: Any) -> Any:
    return flows.signal(event_id, "t.order", key=key, payload={"order": order, **more})


def test_an_event_begins_a_run_for_the_user_whom_the_flow_names(worker: LocalWorker, begun: Any, user: Any) -> None:
    begun()
    received = send(user="root", by="root")
    assert (received.answer, received.place, len(received.woken)) == ("accepted", "started", 1)
    run = Workflow.objects.get()
    assert (run.pk, run.key, run.started_by, run.user_id) == (received.woken[0], "o1", "event:e1", user.pk)
    assert run.input == {"order": "o1", "user": "root", "by": "root"}
    event = Event.objects.get()
    assert (event.status, event.place, event.workflow_id, event.wait_id) == ("consumed", "started", run.pk, None)
    worker.run()
    assert status(run)[0] == "complete"


def test_the_same_event_and_the_same_key_begin_one(worker: LocalWorker, begun: Any) -> None:
    begun(input=lambda event: {"order": event["payload"]["order"]})
    assert [send().answer, send().answer, send("e2", n=2).answer] == ["accepted", "already", "accepted"]
    assert Workflow.objects.count() == 1
    assert send("e3", "o2").answer == "accepted"
    assert Workflow.objects.count() == 2


def test_only_the_newest_version_begins_and_each_flow_does(worker: LocalWorker, begun: Any) -> None:
    begun()
    begun(2)
    begun(name="t-begun-too")
    assert len(send().woken) == 2
    assert set(Workflow.objects.values_list("flow_name", "flow_version")) == {("t-begun", 2), ("t-begun-too", 1)}


def test_who_waits_for_it_goes_first(worker: LocalWorker, begun: Any, declare: Any) -> None:
    begun()
    deadline = flows.Deadline(hours=1, then=flows.ESCALATE)
    waits = declare("t-waits", ask=flows.Wait("t.order", key="k", deadline=deadline, then="done"), done=End(COMPLETE)).start({})
    worker.run()
    assert send().woken == (waits.id,)
    assert Workflow.objects.count() == 1
    worker.run()
    assert send("e2").place == "started", "who waited has ended: this is for nobody else"


def test_what_says_that_it_is_about_a_run_begins_none(worker: LocalWorker, begun: Any) -> None:
    begun()
    other = factories.Line.start({})
    received = flows.signal("e1", "t.order", key="k", payload={"order": "o1"}, about=flows.About(workflow=other.id))
    assert (received.place, Workflow.objects.count()) == ("misdirected", 1)


@pytest.mark.parametrize(
    "options",
    [
        {"user": "t-nobody"},
        {"key": lambda event: event["payload"]["gone"]},
        {"key": lambda event: 3},
        {"key": lambda event: ""},
        {"input": lambda event: "no object"},
    ],
    ids=["user", "raises", "number", "empty", "input"],
)
def test_what_cannot_begin_stays_and_somebody_looks(
    worker: LocalWorker, begun: Any, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    begun(**options)
    received = send()
    assert (received.answer, received.place, received.woken) == ("kept", "unclaimed", ())
    assert "event e1 begins no run of t-begun" in caplog.text
    assert not Workflow.objects.exists()


@pytest.mark.parametrize(
    "options", [{"newest": True, "key": lambda given: given["gone"]}, {"debounce": flows.seconds(5), "key": lambda _: 1 / 0}]
)
def test_an_admission_that_raises_loses_no_event(
    worker: LocalWorker, declare: Any, user: Any, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    by = StartedBy("t.order", key=lambda event: event["payload"]["order"], user="t-ops")
    nodes = {"one": Activity(factories.work, then="done"), "done": End(COMPLETE)}
    version(declare, "t-begun-admitted", 1, nodes, started_by=by, admission=flows.Admission(**options))
    received = send()
    assert (received.answer, received.place) == ("kept", "unclaimed")
    assert "event e1 begins no run of t-begun-admitted" in caplog.text


def test_a_key_that_is_taken_by_another_input_leaves_the_event(worker: LocalWorker, begun: Any, user: Any) -> None:
    begun()
    send()
    assert send("e2", more=True).place == "unclaimed"
    assert Workflow.objects.count() == 1


def test_a_redelivery_begins_what_could_not_begin(worker: LocalWorker, begun: Any, user: Any) -> None:
    user.is_active = False
    user.save()
    begun()
    assert send().place == "unclaimed"
    user.is_active = True
    user.save()
    again = flows.redeliver("e1", by=None, reason="they are back")
    assert (again.answer, again.place) == ("accepted", "started")
    assert Workflow.objects.count() == 1


def test_it_goes_with_the_transaction_of_who_sends(worker: LocalWorker, begun: Any) -> None:
    from django.db import transaction

    begun()
    with transaction.atomic():
        send()
        transaction.set_rollback(True)
    assert not Workflow.objects.exists()
    assert not Event.objects.exists()
    call_command("flows", "signal", "e1", "t.order", key="k", payload='{"order": "o1"}')
    assert Workflow.objects.count() == 1


def test_a_user_who_is_not_there_is_said(begun: Any) -> None:
    begun(user="t-nobody")
    (message,) = [one for one in check_started_by(databases=["default"]) if "t-begun" in one.msg]
    assert (message.id, "t-nobody" in message.msg, bool(message.hint)) == ("outlast_flows.W108", True, True)
    assert check_started_by(databases=[]) == check_started_by() == []


def test_what_came_where_its_type_is_not_known_begins_where_it_is(
    worker: LocalWorker, begun: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun()
    with monkeypatch.context() as without:
        without.setattr(registry.Known, "started_by", {})
        without.setattr(registry.Known, "event_types", frozenset())
        assert (send().place, events.judge_again("default")) == ("unknown", 0)
    worker.tick()
    assert (Event.objects.get().place, Workflow.objects.get().started_by) == ("started", "event:e1")
    assert events.judge_again("default") == 0
    assert send().answer == "already"


def test_what_cannot_begin_when_it_is_judged_again_is_unclaimed(
    worker: LocalWorker, begun: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(user="t-nobody")
    with monkeypatch.context() as without:
        without.setattr(registry.Known, "started_by", {})
        without.setattr(registry.Known, "event_types", frozenset())
        send()
    worker.tick()
    assert (Event.objects.get().place, Workflow.objects.count()) == ("unclaimed", 0)


def test_what_came_where_only_a_wait_is_known_begins_when_it_is_delivered_again(
    worker: LocalWorker, begun: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun()
    with monkeypatch.context() as without:
        without.setattr(registry.Known, "started_by", {})
        without.setattr(registry.Known, "event_types", frozenset({"t.order"}))
        assert send().place == "early"
    worker.tick()
    assert Event.objects.get().place == "early", "a run may wait for it"
    assert flows.redeliver("e1", by=None, reason="it begins a run").place == "started"
