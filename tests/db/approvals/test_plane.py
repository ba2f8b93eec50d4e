"""What the durable plane gets from the human plane: requests opened, closed, told to the gate, used up once."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from approvals.models import Request
from approvals.services.plane import ApprovalPlane
from flows import COMPLETE, FAILED, Activity, Approval, Deadline, Decision, End, Gate, registry
from flows.core.errors import IntentSuperseded
from flows.core.state import ApprovalFact
from flows.models import Transition
from tests.support import approving
from tests.support.approving import World

PLANE = ApprovalPlane()


def test_the_plane_owns_the_waits_of_its_kind() -> None:
    assert isinstance(registry.wait_plane("approval"), ApprovalPlane)


def test_the_gate_is_told_of_the_newest_request_of_each_node(world: World) -> None:
    request = world.ask({"text": "Helo."}, {"text": "Hello."})
    assert PLANE.facts("default", request.workflow_id, ["ask", "other"]) == {
        "ask": ApprovalFact(str(request.pk), "pending", request.digest, 1, request.candidate),
        "other": None,
    }
    world.decide(request, "changes", comment="A letter is missing.")
    world.worker.run()
    second = world.request_of(request.workflow)
    fact = PLANE.facts("default", request.workflow_id, ["ask"])["ask"]
    assert fact == ApprovalFact(str(second.pk), "pending", second.digest, 1, second.candidate)
    world.clock.move(days=2)
    fact = PLANE.facts("default", request.workflow_id, ["ask"])["ask"]
    assert fact is not None
    assert fact.expired


@pytest.mark.req("F6")
def test_an_approval_is_used_once_and_the_same_use_again_is_the_same(world: World) -> None:
    request = world.ask()
    number = str(request.pk)
    assert not PLANE.use("default", number, 7), "nobody has approved it"
    world.decide(request)
    assert PLANE.use("default", number, 7)
    assert PLANE.use("default", number, 7)
    assert not PLANE.use("default", number, 8)
    row = Request.objects.get(pk=request.pk)
    assert (row.status, row.used_by) == ("consumed", 7)


@pytest.mark.req("F2")
def test_an_approval_that_was_not_used_in_its_time_is_asked_for_again(world: World) -> None:
    request = world.ask()
    world.decide(request)
    world.clock.move(hours=25)
    assert not PLANE.use("default", str(request.pk), 1)
    world.worker.run()
    second = world.request_of(request.workflow)
    assert (second.pk > request.pk, second.status, second.digest) == (True, "pending", request.digest)
    assert world.status(request) == "expired"
    noted = Transition.objects.filter(workflow_id=request.workflow_id).latest("seq").note
    assert (noted["verdict"], noted["reason"]) == ("APPROVAL_REQUIRED", "the approval has expired")


def test_an_open_request_is_withdrawn_when_its_workflow_goes_elsewhere(world: World) -> None:
    two, three = world.ask(), world.ask()
    PLANE.closed("default", [two.wait_id], "expired")
    PLANE.closed("default", [three.wait_id], "satisfied")
    assert [world.status(request) for request in (two, three)] == ["cancelled"] * 2, "its time was not over yet"


def test_what_was_answered_stays_when_its_wait_is_closed(world: World) -> None:
    request, denied = world.ask(), world.ask()
    world.decide(request)
    world.decide(denied, "deny", comment="No.")
    PLANE.closed("default", [request.wait_id, denied.wait_id], "satisfied")
    assert (world.status(request), world.status(denied)) == ("approved", "denied")
    PLANE.ended("default", [request.workflow_id, denied.workflow_id])
    assert (world.status(request), world.status(denied)) == ("invalidated", "denied")


@pytest.mark.req("F3", "K1")
@pytest.mark.parametrize("end", [flows.cancel, lambda run: flows.supersede(run, goal="x"), flows.cancel_intent])
def test_no_approval_outlives_its_run(world: World, end: Any) -> None:
    """Answered, and ended before it was used: no wait is open then, and yet the approval must not stay good."""
    request = world.ask()
    world.decide(request)
    end(request.workflow)
    assert world.status(request) == "invalidated"


@pytest.mark.req("F3", "D2")
def test_no_approval_outlives_a_run_whose_own_step_finds_the_goal_gone(world: World, declare: Any) -> None:
    def gone(attempt: Any) -> None:
        raise IntentSuperseded

    flow = declare(
        "t-gone",
        propose=Decision(approving.propose, choices={"release": "ask"}),
        ask=Approval(
            candidate="propose", role=approving.ROLE, expires=Deadline(days=1, then="no"), approved="check", denied="no"
        ),
        check=Activity(gone, then="publish"),
        publish=Activity(approving.publish, gate=Gate(approved_by="ask"), then="done"),
        done=End(COMPLETE),
        no=End(FAILED),
    )
    world.worker.flows, world.worker.versions = [flow.definition.name], [1]
    request = world.ask(flow=flow)
    world.decide(request)
    world.worker.run()
    assert (world.workflow(request).status, world.status(request)) == ("superseded", "invalidated")


@pytest.mark.req("F3")
def test_a_new_question_replaces_what_is_open_or_unused(world: World) -> None:
    from approvals.store import requests as store

    request, other = world.ask(), world.ask()
    world.decide(other)
    assert store.replace(request.workflow_id, "ask", "default") == [request.pk]
    assert store.replace(other.workflow_id, "ask", "default") == [other.pk]
    assert (world.status(request), world.status(other)) == ("invalidated", "invalidated")
    assert store.replace(other.workflow_id, "ask", "default") == []


def test_a_half_opened_request_undoes_the_arrow(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from approvals.store import requests as store
    from flows.core.errors import HalfMove
    from tests.support.approving import PublishNews

    monkeypatch.setattr(store, "open_request", lambda question, using: None)
    run = PublishNews.start({"values": ["x"]}, by=world.robin)
    with pytest.raises(HalfMove, match="its approval request was not"):
        world.worker.run()
    assert flows.get(run).status == "running", "the park was rolled back with it"
