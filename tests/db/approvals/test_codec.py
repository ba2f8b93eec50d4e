"""With a codec, nothing of what a flow was given, made or told lies readable in the record, and everything else is as without one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

import flows
from approvals.models import Request, Review
from flows import (
    COMPLETE,
    FAILED,
    Activity,
    Approval,
    Candidate,
    Deadline,
    Decision,
    Effect,
    End,
    Flow,
    Gate,
    Pipeline,
    Step,
    Wait,
)
from flows.core import payload
from flows.core.errors import PayloadError
from flows.models import Event, Workflow
from flows.services.invariants import scan
from flows.services.replay import replay
from tests.factories import offer, row
from tests.support.approving import ROLE, World
from tests.support.filling import OrderParts, fill

SECRET = "Sw0rdfish-in-plain-sight"


@pytest.fixture(autouse=True)
def sealed(settings: Any, tmp_path: Any) -> Iterator[None]:
    settings.MEDIA_ROOT = tmp_path
    settings.KEY_OF_TEST = base64.b64encode(bytes(range(32))).decode()
    codec = {"BACKEND": "flows.codecs.AesGcm", "KEYS": ["setting:KEY_OF_TEST"]}
    settings.OUTLAST = {**getattr(settings, "OUTLAST", {}), "CODEC": codec}
    yield
    payload.use(None)


def said_where(text: str) -> list[str]:
    """Every table with a row in which this can be read."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'outlast%%'")
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{text}%"])
            if cursor.fetchone() != (0,):
                found.append(table)
    return found


def act(attempt: Any) -> Any:
    attempt.note({"said": SECRET})
    attempt.save_checkpoint({"said": SECRET})
    assert (attempt.notes, attempt.checkpoint) == ({"said": SECRET}, {"said": SECRET})
    with attempt.effect("call", request={"card": SECRET}) as call:
        call.call(lambda: {"receipt": SECRET})
    return {"seen": attempt.input["card"], "receipt": call.evidence}


def first(attempt: Any) -> Any:
    return SECRET


def propose(attempt: Any) -> Candidate:
    assert attempt.results["act"]["receipt"] == {"receipt": SECRET}
    assert attempt.results["wait"]["payload"] == {"pin": SECRET}
    assert attempt.results["line"] == {"first": SECRET, "second": SECRET}
    assert SECRET in attempt.context(max_tokens=4000).text
    return Candidate("release", {"text": SECRET}, {"why": SECRET})


def publish(attempt: Any) -> Any:
    assert attempt.approved["value"] == {"text": SECRET}
    return {"published": attempt.approved["value"]}


@pytest.fixture
def whole(declare: Callable[..., type[Flow]]) -> type[Flow]:
    return declare(
        "t-sealed",
        act=Activity(act, effects={"call": Effect(idempotent=True)}, then="line"),
        line=Pipeline(Step("first", first), Step("second", first), then="wait"),
        wait=Wait("pin.given", key=lambda state: state.input["key"], then="propose", deadline=Deadline(hours=1, then="stopped")),
        propose=Decision(propose, choices={"release": "ask"}),
        ask=Approval(
            candidate="propose", role=ROLE, expires=Deadline(hours=24, then="stopped"), approved="publish", denied="stopped"
        ),
        publish=Activity(publish, gate=Gate(approved_by="ask"), then="done"),
        done=End(COMPLETE, result=lambda state: {"at": state.results["publish"], "first": state.results["act"]}),
        stopped=End(FAILED),
    )


def test_a_whole_run_leaves_nothing_readable(whole: type[Flow], world: World) -> None:
    run = whole.start({"card": SECRET, "key": "k1"}, key="k1", by=world.robin)
    world.worker.run()
    flows.signal("e1", "pin.given", key="k1", payload={"pin": SECRET})
    flows.signal("e2", "pin.given", key="k2", payload={"pin": SECRET})  # nobody waits for it yet
    world.worker.run()
    request = Request.objects.get()
    told = world.decide(request)
    assert told.code == "accepted"
    world.worker.run()
    assert row(run).status == "complete"
    assert flows.describe(run.id).result["at"] == {"published": {"text": SECRET}}
    assert said_where(SECRET) == []
    assert [found.drift for found in replay([run.id])] == [None]
    assert scan() == []


def test_what_was_started_plain_goes_on_sealed(whole: type[Flow], world: World, settings: Any) -> None:
    codec = settings.OUTLAST["CODEC"]
    settings.OUTLAST = {**settings.OUTLAST, "CODEC": None}
    run = whole.start({"card": SECRET, "key": "k1"}, key="k1", by=world.robin)
    settings.OUTLAST = {**settings.OUTLAST, "CODEC": codec}
    world.worker.run()
    flows.signal("e1", "pin.given", key="k1", payload={"pin": SECRET})
    world.worker.run()
    assert row(run).status == "waiting"
    assert said_where(SECRET) == ["outlast_workflow"]
    assert whole.start({"card": SECRET, "key": "k1"}, key="k1", by=world.robin).created is False  # digests are of the value


def test_the_same_event_twice_is_one_though_it_is_sealed_anew(world: World) -> None:
    for _ in range(2):
        flows.signal("e1", "pin.given", key="k", payload={"pin": SECRET})
    event = Event.objects.get()
    assert (event.deliveries, event.status) == (2, "pending")
    assert payload.decode(event.payload) == {"pin": SECRET}


def test_a_form_and_its_file(world: World) -> None:
    request = world.ask(flow=OrderParts)
    told = fill(world, request, title=SECRET)
    assert told and told.code == "accepted"
    world.worker.run()
    assert Workflow.objects.get(pk=request.workflow_id).status == "complete"
    assert payload.decode(Review.objects.get().values)["title"] == SECRET
    assert said_where(SECRET) == []


def test_without_the_key_a_command_says_what_is_missing(declare: Callable[..., type[Flow]], world: World, settings: Any) -> None:
    flow = declare("t-plain", act=Activity(first, then="done"), done=End(COMPLETE, result=lambda state: state.results["act"]))
    offer(world.worker)
    run = flow.start({}, key="k")
    world.worker.run()
    assert flows.describe(run.id).result == SECRET
    settings.OUTLAST = {**settings.OUTLAST, "CODEC": None}
    with pytest.raises(PayloadError, match="configure it in OUTLAST"):
        flows.describe(run.id)
