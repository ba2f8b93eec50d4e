"""Somebody writes to the tables past their guards: nothing is executed, approved or kept a part of that people have not approved, and every page
and program that shows it still does.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

import flows
from approvals.api import revoke
from tests.db.approvals.test_parts import FILES, DeleteFiles
from tests.db.approvals.test_tools_answers import by_hand
from tests.support.api import api
from tests.support.approving import World
from tests.support.commanding import approvals_cli

__all__ = ["api", "approvals_cli"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F1", "F3")]

TEXT = "UPDATE outlast_approval_request SET candidate = jsonb_set(candidate, '{value,text}', '\"Evil.\"') WHERE id = %s"
WHOLE = "UPDATE outlast_approval_request SET candidate = %s::jsonb WHERE id = %s"

#: What may stand where a candidate stood.
SHAPES = [None, [], {}, "text", 7, {"choice": "release"}, {"value": {"text": "Evil."}}, {"choice": {"a": 1}, "value": [[]]}]
SHAPES += [{"$outlast": "unknown", "data": {}}, {"choice": "release", "value": None, "digest": 7, "revision": "x"}]


def test_what_was_altered_after_the_approval_is_not_executed(world: World) -> None:
    request = world.ask()
    assert world.decide(request)
    by_hand(TEXT, request.pk)
    world.worker.run()
    row = world.workflow(request)
    assert (row.outcome, row.error_code) == ("HUMAN_REQUIRED", "CANDIDATE_INVALID")
    assert world.status(request) == "approved", "nothing was used up"


def test_a_person_takes_it_back_and_it_is_asked_about_anew(world: World) -> None:
    request = world.ask()
    assert world.decide(request)
    by_hand(TEXT, request.pk)
    world.worker.run()
    assert revoke(request, reason="Somebody wrote to the table.", by=world.rita)
    flows.resume(request.workflow)
    world.worker.run()
    fresh = world.request_of(world.workflow(request))
    assert (fresh.pk != request.pk, fresh.status, fresh.candidate["value"]) == (True, "pending", {"text": "Hello."})
    assert world.decide(fresh)
    world.worker.run()
    assert world.workflow(request).result["publish"]["published"] == {"text": "Hello."}


@pytest.mark.parametrize("shape", SHAPES, ids=json.dumps)
def test_an_approval_of_any_other_shape_is_not_executed_either(world: World, shape: Any) -> None:
    request = world.ask()
    assert world.decide(request)
    by_hand(WHOLE, json.dumps(shape), request.pk)
    world.worker.run()
    row = world.workflow(request)
    assert (row.outcome, row.error_code) == ("HUMAN_REQUIRED", "CANDIDATE_INVALID")


def test_what_was_altered_before_the_answer_is_no_part_that_could_be_kept(world: World) -> None:
    request = world.ask(FILES, flow=DeleteFiles)
    by_hand(
        "UPDATE outlast_approval_request SET candidate = jsonb_set(candidate, '{value,files,0}', '\"/etc\"') WHERE id = %s",
        request.pk,
    )
    said = world.decide(request, "narrow", keep=[0], comment="Only that.")
    assert (said.code, world.status(request)) == ("CANDIDATE_INVALID", "pending")
    assert world.decide(request, "changes", comment="Somebody wrote to the table.")
    world.worker.run()
    assert world.request_of(world.workflow(request)).candidate["value"] == FILES


def test_nor_is_its_number_believed(world: World) -> None:
    """Revision and digest stand beside what is hashed."""
    request = world.ask(FILES, flow=DeleteFiles)
    by_hand('UPDATE outlast_approval_request SET candidate = candidate || \'{"revision": "x"}\' WHERE id = %s', request.pk)
    assert world.decide(request, "narrow", keep=[0], comment="Only that.")
    world.worker.run()
    part = world.request_of(world.workflow(request))
    assert (part.revision, part.candidate["value"]["files"]) == (2, ["a"])


@pytest.mark.req("F7")
@pytest.mark.parametrize("shape", SHAPES, ids=json.dumps)
def test_a_candidate_of_any_shape_is_shown_and_can_be_refused(
    world: World, client: Any, api: Any, approvals_cli: Any, shape: Any
) -> None:
    request = world.ask(FILES, {"files": ["d"]}, flow=DeleteFiles)
    evidence = json.dumps({"$outlast": "unknown", "data": shape})
    by_hand(
        "UPDATE outlast_approval_request SET candidate = %s::jsonb, evidence = %s::jsonb WHERE id = %s",
        json.dumps(shape),
        evidence,
        request.pk,
    )
    client.force_login(world.rita)
    url = reverse("admin:outlast_approvals_request_decide", args=[request.pk])
    shown = client.get(url)
    assert shown.status_code == 200
    assert "Approve this exact candidate" not in shown.content.decode()
    for path in ("changelist", "history"):
        where = reverse(f"admin:outlast_approvals_request_{path}", args=[request.pk] if path == "history" else [])
        assert client.get(where).status_code == 200
    found = api("rita").get(f"/requests/{request.pk}")
    assert (found.status, found.data["candidate"]["sound"]) == (200, False)
    assert [one["verdict"] for one in found.data["answers"]] == ["changes", "deny"]
    assert approvals_cli("show", request.pk).code == 0
    for verdict in ("approve", "narrow"):
        more = {"keep": [0]} if verdict == "narrow" else {}
        assert world.decide(request, verdict, comment="x", **more).code == "CANDIDATE_INVALID"
    assert world.decide(request, "changes", comment="Somebody wrote to the table.")
    world.worker.run()
    fresh = world.request_of(world.workflow(request))
    assert (fresh.status, fresh.candidate["value"]) == ("pending", {"files": ["d"]})
    assert client.get(reverse("admin:outlast_approvals_request_decide", args=[fresh.pk])).status_code == 200
    assert api("rita").get(f"/requests/{fresh.pk}").data["since"]["answered_by_you"] is True
