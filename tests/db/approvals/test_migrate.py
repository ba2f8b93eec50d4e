"""Questions and approvals of a run that goes on under a newer version: what is still exactly the same goes over, everything else ends."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flows
from approvals.models import Request
from flows import Activity, Deadline, Migrated, Wait
from flows.core.policies import ESCALATE
from flows.models import Notice
from flows.models import Wait as WaitRow
from tests import factories
from tests.support.approving import ROLE, PublishNews, World

pytestmark = pytest.mark.req("G2", "F1")

Second = Callable[..., type[flows.Flow]]


@pytest.fixture
def second(world: World) -> Iterator[Second]:
    """Declare version 2 of the flow with some nodes replaced; the worker offers it."""
    with factories.declaring(world.worker) as declare:

        def make(steps: Any = None, **nodes: Any) -> type[flows.Flow]:
            kept = {name: copy.copy(node) for name, node in PublishNews.definition.nodes.items()}
            meta = {"version": 2, "migrate_from": {1: steps if steps is not None else {}}}
            return declare("publish-news", meta=meta, **{**kept, **nodes})

        yield make


SILENCE = {"expires": Deadline(hours=24, then="stopped")}


def asking(**changes: Any) -> flows.Approval:
    options = {"candidate": "propose", "role": ROLE, "expires": Deadline(hours=24, then=ESCALATE),
               "approved": "publish", "changes": "propose", "denied": "stopped", **changes}  # fmt: skip
    return flows.Approval(**options)


def scan() -> Activity:
    return Activity(factories.work, then="publish")


def test_an_open_question_that_stays_the_same_goes_over(world: World, second: Second) -> None:
    request = world.ask({"text": "Hello."})
    second(ask=asking(approved="scan", expires=Deadline(hours=48, then=ESCALATE)), scan=scan())
    assert flows.migrate(request.workflow_id)
    world.worker.run()
    after = Request.objects.get()
    wait = WaitRow.objects.get()
    assert (after.pk, after.status, after.expires_at) == (request.pk, "pending", request.expires_at)
    assert (wait.pk, wait.status, wait.epoch, wait.deadline_at) == (request.wait_id, "open", 1, request.expires_at)
    assert not Notice.objects.exists()
    assert world.decide(request).code == "accepted"
    world.worker.run()
    assert world.workflow(request).result["publish"]["published"] == {"text": "Hello."}
    assert factories.called("scan") == 1


def test_an_answer_that_was_given_goes_over(world: World, second: Second) -> None:
    request = world.ask()
    assert world.decide(request)
    second(ask=asking(approved="scan"), scan=scan())
    assert flows.migrate(request.workflow_id)
    world.worker.run()
    assert (world.workflow(request).status, world.status(request), Request.objects.count()) == ("complete", "consumed", 1)


def test_an_approval_that_nobody_used_goes_over(world: World, second: Second) -> None:
    """The run has passed the question, and waits for something else before it uses the approval."""
    with factories.declaring(world.worker) as declare:
        hold = Wait("t.hold", key="k", deadline=Deadline(hours=9, then=ESCALATE), then="publish")
        nodes = {name: copy.copy(node) for name, node in PublishNews.definition.nodes.items()}
        one = declare("t-news-holding", **{**nodes, "ask": asking(approved="hold"), "hold": hold})
        request = world.ask(flow=one)
        assert world.decide(request)
        world.worker.run()
        declare("t-news-holding", meta={"version": 2, "migrate_from": {1: {}}},
                **{**nodes, "ask": asking(approved="scan"), "scan": Activity(factories.work, then="hold"), "hold": hold})  # fmt: skip
        assert flows.migrate(request.workflow_id)
        flows.signal("e1", "t.hold", key="k")
        world.worker.run()
        assert (world.workflow(request).status, Request.objects.count()) == ("complete", 1)


@pytest.mark.parametrize("answered", [False, True], ids=["open", "approved"])
@pytest.mark.parametrize("change", [{"role": "another role"}, {"self_approval": True}, {"changes": ""}, SILENCE], ids=str)
def test_another_question_is_asked_anew(world: World, second: Second, change: dict[str, Any], *, answered: bool) -> None:
    request = world.ask()
    if answered:
        world.decide(request)
    second(ask=asking(**change))
    assert flows.migrate(request.workflow_id)
    if answered and change is SILENCE:  # it was answered: what silence would have meant is no matter any more
        world.worker.run()
        assert (world.status(request), world.workflow(request).status) == ("consumed", "complete")
        return
    assert world.status(request) == ("invalidated" if answered else "cancelled")
    world.worker.run()
    fresh = world.request_of(world.workflow(request))
    assert (fresh.status, fresh.epoch, world.workflow(request).status) == ("pending", 1, "waiting")
    assert fresh.pk != request.pk
    refused = world.decide(request)
    assert refused.code in ("REQUEST_CANCELLED", "REQUEST_INVALIDATED", "ANSWERED_BEFORE", "NOT_WAITING", "ALREADY")
    assert world.status(fresh) == "pending"
    told = list(Notice.objects.values_list("outcome", "code"))
    assert told == ([] if answered else [("APPROVAL_WITHDRAWN", "WORKFLOW_MIGRATED")])


def test_another_candidate_is_asked_about_anew(world: World, second: Second) -> None:
    request = world.ask({"text": "Hello."})
    other = flows.Candidate("release", {"text": "Something else."})
    second(lambda state: Migrated("ask", results={"propose": other}))
    assert flows.migrate(request.workflow_id)
    world.worker.run()
    fresh = world.request_of(world.workflow(request))
    assert (world.status(request), fresh.status, fresh.candidate["value"]) == (
        "cancelled",
        "pending",
        {"text": "Something else."},
    )
    assert fresh.digest != request.digest
    world.decide(fresh)
    world.worker.run()
    assert world.workflow(request).result["publish"]["published"] == {"text": "Something else."}


def test_led_past_its_question(world: World, second: Second) -> None:
    """Whoever jumps over an approval is sent back to it by the gate: nothing was approved."""
    request = world.ask()
    second({"ask": "publish"})
    assert flows.migrate(request.workflow_id)
    assert world.status(request) == "cancelled"
    world.worker.run()
    fresh = world.request_of(world.workflow(request))
    assert (fresh.status, world.workflow(request).node) == ("pending", "ask")


def test_a_refused_migration_leaves_the_question_alone(world: World, second: Second) -> None:
    request = world.ask()
    second(lambda state: None)
    assert flows.migrate(request.workflow_id).answer == "refused"
    assert (world.status(request), Request.objects.get().epoch) == ("pending", 0)
    assert world.decide(request)
