"""Answering what an Ask asks: by whom, to which form, once, and that it authorises nothing."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

import flows
from approvals.api import Answered, UnknownRequest, aanswer, answer, assign, decide, delegate, revoke
from approvals.core.status import RequestKind
from approvals.models import Request, Review
from approvals.services import inbox
from approvals.services.plane import ApprovalPlane
from flows.core.errors import PayloadError
from flows.models import Timer, Transition, Wait, Workflow
from tests.support import filling
from tests.support.approving import World
from tests.support.filling import ChooseAWay, OrderParts, fill
from tests.support.laddering import somebody

pytestmark = pytest.mark.req("C6")


@pytest.fixture(autouse=True)
def stored(settings: Any, tmp_path: Any) -> None:
    settings.MEDIA_ROOT = tmp_path


def asked(world: World, **more: Any) -> Request:
    return world.ask(flow=OrderParts, **more)


def test_an_answer_is_the_nodes_result_and_the_flow_goes_on(world: World) -> None:
    request = asked(world)
    assert (request.kind, request.status, request.answers, request.requester_label) == ("ask", "pending", ["answered"], "robin")
    assert request.intent_version == 1
    assert request.expires_at is not None
    assert timedelta(hours=23) < request.expires_at - request.asked_at <= timedelta(hours=24)
    told = fill(world, request, wanted_by="2026-12-24")
    assert told and told.code == "accepted"
    world.worker.run()
    run = Workflow.objects.get(pk=request.workflow_id)
    assert run.status == "complete"
    whole = {**filling.VALUES, "wanted_by": "2026-12-24", "note": None, "contract": None}
    assert run.result["asked"] == {"answer": whole, "by": "rita", "request": str(request.pk)}
    assert run.result["ordered"] == "Bolts"
    assert (world.status(request), Review.objects.get().values) == ("answered", whole)
    arrow = Transition.objects.get(workflow_id=run.pk, trigger="answer")
    assert (arrow.from_status, arrow.to_status, arrow.trigger_ref) == ("waiting", "runnable", str(request.pk))


def test_the_async_twin_does_the_same(world: World) -> None:
    request = asked(world)

    async def given() -> Answered:
        try:
            return await aanswer(request.pk, values=filling.VALUES, digest=request.digest, by=world.rita)
        finally:
            await sync_to_async(connections.close_all)()

    told = asyncio.run(given())
    assert (told.code, world.status(request)) == ("accepted", "answered")


def test_the_form_may_be_made_of_the_state_and_a_choice_leads_on(world: World) -> None:
    request = world.ask("left", "right", flow=ChooseAWay)
    assert request.candidate["value"] == {
        "why": "About left.",
        "fields": [
            {
                "name": "verdict",
                "kind": "choice",
                "label": "Verdict",
                "help": "",
                "required": True,
                "choices": [["left", "left"], ["right", "right"]],
                "least": None,
                "most": None,
            }
        ],
    }
    assert answer(request, values={"verdict": "right"}, digest=request.digest, by=world.rita)
    world.worker.run()
    assert world.workflow(request).node == "stopped"


def test_a_form_whose_answers_lead_nowhere_is_not_asked(world: World) -> None:
    run = ChooseAWay.start({"values": ["left", "up"]}, by=world.robin)
    world.worker.run()
    row = Workflow.objects.get(pk=run.id)
    assert (row.outcome, row.error_code) == ("HUMAN_REQUIRED", "DEFINITION_FAULT")
    assert not Request.objects.exists()


# ---------------------------------------------------------------------- what is given


def test_faults_are_told_by_field_and_nothing_is_written(world: World) -> None:
    request = asked(world)
    told = fill(world, request, title="", count="many", price="0", size="xl", more="x")
    assert not told
    assert told.code == "ANSWER_INVALID"
    assert told.errors == {
        "": ["“more” was not asked for."],
        "title": ["This is needed."],
        "count": ["Give a whole number, such as 42."],
        "price": ["At least 0.01."],
        "size": ["Choose one of those that are offered."],
    }
    assert (world.status(request), Review.objects.count()) == ("pending", 0)
    assert fill(world, request), "and it can still be answered"


def test_all_of_it_together_is_bounded(world: World, settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "MAX_PAYLOAD_BYTES": 4000}
    request = asked(world)
    told = fill(world, request, note="x" * 3900)
    assert told.code == "ANSWER_INVALID"
    assert told.errors[""][0].startswith("All of it together is too much")


@pytest.mark.parametrize(
    "given",
    [
        {"values": ["title"]},
        {"files": "contract"},
        {"values": {"contract": 1}, "files": {"contract": filling.file()}},
        {"files": {"contract": b"bytes"}},
        {"digest": "x" * 201},
        {"digest": "\x00"},
    ],
)
def test_a_call_that_makes_no_sense_is_refused(world: World, given: dict[str, Any]) -> None:
    request = asked(world)
    with pytest.raises(PayloadError):
        answer(request, **{"values": filling.VALUES, "digest": request.digest, "by": world.rita, **given})
    with pytest.raises(UnknownRequest):
        answer(10**15, digest="x", by=world.rita)
    assert world.status(request) == "pending"


# ---------------------------------------------------------------------- who


def told(found: Answered) -> str:
    return found.code


def test_only_those_who_are_asked_may_answer(world: World) -> None:
    request = asked(world)
    assert told(fill(world, request, by=world.vera)) == "NOT_PERMITTED"
    assert told(fill(world, request, by=world.otto)) == "NOT_PERMITTED"
    assert told(fill(world, request, by=world.sue)) == "NOT_ASKED"
    assert told(fill(world, request, by=world.sue, title="")) == "NOT_ASKED", "a stranger is told nothing of the form"
    assert world.refusals(request) == ["NOT_PERMITTED", "NOT_PERMITTED", "NOT_ASKED", "NOT_ASKED"]
    assert not Review.objects.filter(values__isnull=False).exists()
    assert fill(world, request, by=world.ron)


def test_the_accountable_user_may_answer_unless_the_flow_says_no(world: World) -> None:
    own, others = asked(world), world.ask("left", "right", flow=ChooseAWay)
    assert set(inbox.eligible(Request.objects.all(), world.robin)) == {own}
    assert fill(world, own, by=world.robin)
    refused = answer(others, values={"verdict": "left"}, digest=others.digest, by=world.robin)
    assert refused.code == "SELF_APPROVAL"
    assert refused.sentence.endswith("its flow wants the answer of somebody else of approval reviewers.")


def test_somebody_may_stand_in_and_somebody_may_look_at_it(world: World) -> None:
    request, dora = asked(world), somebody("dora")
    assert told(fill(world, request, by=dora)) == "NOT_ASKED"
    delegate(world.rita, dora, until=timezone.now() + timedelta(days=9), reason="On leave", by=world.sue)
    assert assign(request, to=world.ron, by=world.ron)
    assert set(inbox.eligible(Request.objects.all(), dora)) == {request}
    assert fill(world, request, by=dora)
    taken = Review.objects.get(refused="")
    assert (taken.by_label, taken.for_label, taken.verdict) == ("dora", "rita", "answer")


def test_nobody_is_asked_where_nobody_could_answer(world: World, settings: Any) -> None:
    settings.OUTLAST = {"REFUSE_UNANSWERABLE": True}
    for user in (world.robin, world.rita, world.ron):
        user.groups.clear()
    run = OrderParts.start({"values": []}, by=world.robin)
    world.worker.run()
    row = Workflow.objects.get(pk=run.id)
    assert (row.outcome, row.error_code, Request.objects.count()) == ("HUMAN_REQUIRED", "NOBODY_ELIGIBLE", 0)


def test_reminders_and_escalation_come_as_for_an_approval(world: World) -> None:
    request, meg = asked(world), somebody("meg", role="managing editors")
    assert told(fill(world, request, by=meg)) == "NOT_ASKED"
    kinds = Timer.objects.filter(workflow_id=request.workflow_id, fired_at=None).values_list("kind", flat=True)
    assert sorted(kinds) == ["escalation", "reminder", "wait_deadline"]
    world.clock.move(hours=9)
    world.worker.tick()
    assert fill(world, request, by=meg)


# ---------------------------------------------------------------------- once, and to this form


def test_the_first_answer_stands_and_the_same_again_is_known(world: World) -> None:
    request = asked(world)
    assert fill(world, request)
    assert told(fill(world, request)) == "already"
    assert told(fill(world, request, count=13)) == "ANSWERED_BEFORE", "the same person with other values"
    assert told(fill(world, request, by=world.ron)) == "ANSWERED_BEFORE"
    assert Wait.objects.get(pk=request.wait_id).evidence["answer"]["count"] == 12
    assert world.refusals(request) == ["ANSWERED_BEFORE"] * 2


def test_an_answer_to_another_form_is_refused(world: World) -> None:
    request = asked(world)
    refused = fill(world, request, digest="sha256:" + "0" * 64)
    assert refused.code == "STALE_CANDIDATE"
    assert "fill in that form" in refused.sentence
    assert world.status(request) == "pending"


@pytest.mark.parametrize(
    "altered", ["jsonb_set(candidate, '{value,why}', '\"other\"')", "'{}'", "jsonb_set(candidate, '{value,fields}', '[7]')"]
)
def test_a_form_that_was_altered_by_hand_cannot_be_answered(world: World, altered: str) -> None:
    request = asked(world)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE outlast_approval_request DISABLE TRIGGER USER")
        cursor.execute(f"UPDATE outlast_approval_request SET candidate = {altered} WHERE id = %s", [request.pk])
        cursor.execute("ALTER TABLE outlast_approval_request ENABLE TRIGGER USER")
    assert told(fill(world, request)) == "CANDIDATE_INVALID"
    client = Client()
    client.force_login(world.rita)
    shown = client.get(reverse("admin:outlast_approvals_request_decide", args=[request.pk])).content.decode()
    assert "does not hash to this digest. It cannot be answered." in shown


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (lambda run, world: flows.cancel(run), "WORKFLOW_ENDED"),
        (lambda run, world: flows.cancel_intent(run.intent), "INTENT_SUPERSEDED"),
        (lambda run, world: flows.supersede(run.intent, goal="Other parts", by=world.robin), "INTENT_SUPERSEDED"),
        (lambda run, world: (world.clock.move(hours=25), world.worker.tick(), world.worker.run()), "REQUEST_EXPIRED"),
    ],
    ids=["cancel", "cancel the intent", "supersede", "expire"],
)
def test_after_its_end_it_takes_no_answer(world: World, end: Any, code: str) -> None:
    request = asked(world)
    end(world.workflow(request), world)
    assert told(fill(world, request, files={"contract": filling.file()})) == code
    assert world.status(request) in ("cancelled", "expired")
    assert not set(inbox.eligible(Request.objects.all(), world.rita))


def test_when_its_time_is_over_its_policy_is_done_and_no_answer_is_made_up(world: World) -> None:
    run = asked(world).workflow
    world.clock.move(hours=25)
    world.worker.tick()
    world.worker.run()
    run.refresh_from_db()
    assert (run.outcome, run.error_code) == ("HUMAN_REQUIRED", "ASK_EXPIRED")
    other = world.ask("left", "right", flow=ChooseAWay)
    world.clock.move(hours=3)
    world.worker.tick()
    world.worker.run()
    assert world.workflow(other).node == "stopped"
    assert Wait.objects.get(pk=other.wait_id).evidence is None


def test_an_answer_that_is_rolled_back_was_never_given(world: World) -> None:
    request = asked(world)
    with pytest.raises(ZeroDivisionError):
        filling.fill_and_roll_back(world, request)
    assert (world.status(request), Review.objects.count()) == ("pending", 0)
    assert fill(world, request)


# ---------------------------------------------------------------------- it authorises nothing


def test_an_ask_cannot_be_approved_and_an_approval_not_be_filled_in(world: World) -> None:
    request, approval = asked(world), world.ask()
    for verdict in ("approve", "changes", "deny"):
        refused = decide(request, verdict=verdict, digest=request.digest, by=world.rita, comment="Because.")
        assert refused.code == "ANSWER_NOT_OFFERED"
        assert "it approves nothing" in refused.sentence
    assert told(answer(approval, values={}, digest=approval.digest, by=world.rita)) == "ANSWER_NOT_OFFERED"
    assert told(answer(approval, values={"x": 1}, digest=approval.digest, by=world.rita)) == "ANSWER_NOT_OFFERED"
    assert (world.status(request), world.status(approval)) == ("pending", "pending")


def test_no_gate_is_ever_told_of_an_ask(world: World) -> None:
    request = asked(world)
    assert fill(world, request)
    plane = ApprovalPlane()
    assert plane.facts("default", request.workflow_id, ["ask"]) == {"ask": None}
    (known,) = plane.asked("default", [request.workflow_id])[request.workflow_id]
    assert (known.kind, known.answered) == ("ask", "answered"), "replay knows that it was asked, and that it was no approval"
    assert not plane.use("default", str(request.pk), 1)
    assert revoke(request, reason="Not so.", by=world.sue).code == "TOO_LATE"
    assert Request.objects.get(pk=request.pk).kind == RequestKind.ASK


def test_a_new_question_of_the_node_ends_the_older_one(world: World) -> None:
    request = asked(world)
    world.clock.move(hours=25)
    world.worker.tick()
    world.worker.run()
    flows.resume(world.workflow(request), by=world.sue)
    world.worker.run()
    newer = world.request_of(world.workflow(request))
    assert newer.pk != request.pk
    assert (newer.revision, newer.digest) == (2, request.digest), "asked a second time, in the same words"
    assert told(fill(world, request)) == "REQUEST_EXPIRED"
    assert fill(world, newer)
