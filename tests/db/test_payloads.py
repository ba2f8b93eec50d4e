"""Values at the edge: a clear error that names whose value it is; nothing is kept, nothing is tried again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction

import flows
from flows import COMPLETE, Activity, Deadline, End, Wait
from flows.core.payload import ENVELOPE
from flows.errors import PayloadError
from flows.models import Attempt, Event, Intent, Workflow
from flows.testing import LocalWorker
from tests import factories
from tests.factories import Ask, Line, does, row, status

BAD: dict[str, Any] = {
    "nul": {"a": "x\x00y"},
    "nul in a key": {"x\x00y": 1},
    "surrogate": {"a": "\ud800"},
    "nan": {"a": math.nan},
    "infinity": {"a": [math.inf]},
    "large": {"a": "x" * 300_000},
    "object": {"a": object()},
    "set": {"a": {1, 2}},
    "bytes": {"a": b"x"},
    "beyond 2^53": {"a": 2**53},
    "key": {1: "a"},
    "deep": {"a": eval("[" * 150 + "]" * 150)},
}
RESULT_ONLY = {name: value for name, value in BAD.items() if name not in ("beyond 2^53", "key")}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_input_starts_nothing(name: str) -> None:
    with pytest.raises(PayloadError, match="the input of t-line"):
        Line.start(BAD[name], key="k")
    assert not (Workflow.objects.exists() or Intent.objects.exists())


@pytest.mark.parametrize("value", [[], "", 0, False, "text", [1], 5])
def test_an_input_is_an_object(value: Any) -> None:
    with pytest.raises(PayloadError, match="must be an object"):
        Line.start(value)
    assert not Workflow.objects.exists()


@pytest.mark.parametrize("key", ["", "x\x00y", "\ud800", "k" * 501, 7, b"k"], ids=repr)
def test_a_bad_key_starts_nothing(key: Any) -> None:
    with pytest.raises(PayloadError, match="the key of t-line"):
        Line.start({}, key=key)
    assert not Workflow.objects.exists()


@pytest.mark.parametrize("text", ["x\x00y", "\ud800"], ids=repr)
@pytest.mark.parametrize("argument", ["goal", "session", "subject"])
def test_bad_text_beside_the_input_starts_nothing(argument: str, text: str) -> None:
    with transaction.atomic(), pytest.raises(PayloadError):
        Line.start({}, **{argument: text})
    assert not (Workflow.objects.exists() or Intent.objects.exists())


@pytest.mark.parametrize("name", BAD)
def test_a_bad_payload_is_not_kept(name: str) -> None:
    with pytest.raises(PayloadError, match="the payload of event e1"):
        flows.signal("e1", "t.asked", key="k", payload=BAD[name])
    assert not Event.objects.exists()


@pytest.mark.parametrize("payload", [[], "x", 5, False])
def test_a_payload_is_an_object(payload: Any) -> None:
    with pytest.raises(PayloadError, match="must be an object"):
        flows.signal("e1", "t.asked", key="k", payload=payload)
    assert not Event.objects.exists()


@pytest.mark.parametrize("text", ["", "  ", "x\x00y", "\ud800", "k" * 501, None, 5], ids=repr)
@pytest.mark.parametrize("argument", ["event_id", "type", "key"])
def test_bad_names_of_a_signal_are_not_kept(argument: str, text: Any) -> None:
    names = {"event_id": "e1", "type": "t.asked", "key": "k", argument: text}
    with pytest.raises(PayloadError, match="must be text"):
        flows.signal(names["event_id"], names["type"], key=names["key"])
    assert not Event.objects.exists()


@pytest.mark.parametrize("name", RESULT_ONLY)
def test_a_bad_result_asks_a_person_at_once(worker: LocalWorker, name: str) -> None:
    does["one"] = lambda attempt: RESULT_ONLY[name]
    run = Line.start({})
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "one")
    assert row(run).error_code == "PAYLOAD_INVALID"
    assert Attempt.objects.get(workflow_id=run.id).outcome == "failed"
    assert factories.called("one") == 1


def test_a_result_of_the_workflow_that_cannot_be_stored(worker: LocalWorker, declare: Callable[..., type[flows.Flow]]) -> None:
    flow = declare("t-large", one=Activity(factories.work, then="done"), done=End(COMPLETE, result=lambda state: "x" * 300_000))
    run = flow.start({})
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "one")
    assert row(run).error_code == "DEFINITION_FAULT"


@pytest.mark.parametrize(
    "value", [{}, {"a": None}, {"ä": "\U0001f600 \u2028"}, {"a": [1, 2.5, True, "x\\u0000"]}, {ENVELOPE: "json", "data": 1}]
)
def test_good_values_come_back_as_they_were(worker: LocalWorker, value: dict[str, Any]) -> None:
    seen = []
    does["after"] = lambda attempt: seen.append(dict(attempt.input["value"])) or value
    run = Ask.start({"value": value, "key": "k"})
    worker.run()
    flows.signal("e1", "t.asked", key="k", payload=value)
    worker.run()
    flows.signal("e2", "t.again", key="k", payload=value)
    worker.run()
    assert seen == [value]
    result = flows.describe(run).result
    assert result["ask"] == {"value": value, "event": "e1", "payload": value}
    assert result["again"]["payload"] == value


def test_an_input_in_the_shape_of_the_envelope() -> None:
    odd = {ENVELOPE: "rot13", "data": 1}
    run = Line.start(odd, key="k")
    assert not Line.start(odd, key="k").created
    assert row(run).input == {ENVELOPE: "json", "data": odd}


def test_an_early_event_in_the_shape_of_the_envelope(worker: LocalWorker) -> None:
    odd = {ENVELOPE: "rot13", "data": 1}
    run = Ask.start({"key": "k"})
    flows.signal("e1", "t.asked", key="k", payload=odd)
    flows.signal("e2", "t.again", key="k", payload=odd)
    worker.run()
    result = flows.describe(run).result
    assert result["ask"]["payload"] == result["ask"]["value"] == result["again"]["payload"] == odd


def test_a_result_in_the_shape_of_the_envelope(worker: LocalWorker, declare: Callable[..., type[flows.Flow]]) -> None:
    odd = {ENVELOPE: "rot13", "data": 1}
    flow = declare(
        "t-odd", one=Activity(factories.work, then="done"), done=End(COMPLETE, result=lambda state: state.results["one"])
    )
    does["one"] = lambda attempt: odd
    run = flow.start({})
    worker.run()
    assert flows.describe(run).result == odd


@pytest.mark.parametrize("key", ["k" * 501, "k\x00", "\ud800", " ", None, 5], ids=repr)
def test_a_wait_whose_key_no_signal_could_name(worker: LocalWorker, declare: Callable[..., type[flows.Flow]], key: Any) -> None:
    deadline = Deadline(hours=1, then=flows.ESCALATE)
    ask = Wait("t.asked", key=lambda state: key, deadline=deadline, then="done")
    flow = declare("t-key", one=Activity(factories.work, then="ask"), ask=ask, done=End(COMPLETE))
    run = flow.start({})
    worker.run()
    assert status(run) == ("waiting", "HUMAN_REQUIRED", "one")
    assert row(run).error_code == "DEFINITION_FAULT"
    assert factories.called("one") == 1


@pytest.mark.parametrize("text", ["x\x00y", "\ud800", "x" * 5000], ids=["nul", "surrogate", "long"])
def test_a_reason_is_kept_as_far_as_it_is_text(worker: LocalWorker, text: str) -> None:
    user = get_user_model().objects.create_user("robin")
    flows.pause(Line.start({}), reason=text, by=user)
    run = Line.start({})
    flows.pause(run, reason=text)
    flows.resume(run, reason=text)
    flows.cancel(run, reason=text)
    flows.supersede(Line.start({}), goal="Another", reason=text)
    flows.cancel_intent(Line.start({}), reason=text)


@pytest.mark.parametrize("goal", ["x\x00y", "\ud800"], ids=repr)
def test_a_bad_goal_supersedes_nothing(goal: str) -> None:
    run = Line.start({})
    with pytest.raises(PayloadError):
        flows.supersede(run, goal=goal)
    assert status(run)[0] == "runnable"


@pytest.mark.parametrize("nonsense", ["nonsense", 5, None, uuid4(), object()], ids=["text", "number", "none", "uuid", "object"])
def test_verbs_on_nothing(nonsense: Any) -> None:
    for verb in (flows.cancel, flows.pause, flows.resume, flows.describe, flows.get):
        with pytest.raises(flows.errors.UnknownWorkflow):
            verb(nonsense)
    with pytest.raises(flows.errors.UnknownIntent):
        flows.supersede(nonsense, goal="x")
    with pytest.raises(flows.errors.UnknownIntent):
        flows.cancel_intent(nonsense)
