"""An answer counts as the page said that it would: in that step, in that name, about that candidate; or it is not taken."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client

from approvals.api import delegate, end_delegation
from approvals.models import Pool, Request, Review
from flows.services.clock import now
from tests.admin.test_ask_page import FILLED
from tests.admin.test_together_pages import give, select, selection
from tests.db.approvals.test_parts import FILES, DeleteFiles
from tests.support import objects
from tests.support.approving import ROLE, World
from tests.support.browsing import Forms, client_of, page, said, url_of, words
from tests.support.filling import OrderParts, fill
from tests.support.laddering import POOL, ask_long, somebody

pytestmark = pytest.mark.req("F3", "F5", "F7")

#: The record is written to by hand in these: no replay goes that way.
STRAYS = ("test_what_was_altered_after_it_was_approved_is_not_executed_and_breaks_no_worker",)


def sent(client: Client, request: Request, **more: Any) -> dict[str, Any]:
    """What the form of the page holds, with an answer."""
    held = Forms(page(client, url_of(request))).values
    return {**{name: held[name] for name in ("digest", "step", "delegation")}, **more}


def stand_in(world: World, giver: Any, taker: Any) -> Any:
    return delegate(giver, taker, until=now("default") + timedelta(days=1), reason="On leave", by=world.sue)


def test_an_approval_does_not_count_in_a_step_that_was_not_shown(world: World) -> None:
    request = ask_long(world)
    Pool.objects.get(name=POOL).members.add(world.rita)
    client = client_of("rita")
    form = sent(client, request, verdict="approve")
    for editor in (world.ron, somebody("ed", role=ROLE)):
        world.decide(request, by=editor)
    told = said(client.post(url_of(request), form, follow=True))
    assert f"Your answer would count for pool {POOL} now, in the name of rita" in told
    assert (world.status(request), world.refusals(request)) == ("pending", ["PLACE_CHANGED"])
    assert client.post(url_of(request), sent(client, request, verdict="approve")).status_code == 302
    assert world.status(request) == "approved"


def test_nor_in_a_name_that_was_not_shown(world: World) -> None:
    request, dora = world.ask(), somebody("dora")
    first = stand_in(world, world.ron, dora)
    client = client_of("dora")
    form = sent(client, request, verdict="approve")
    assert form["delegation"] == str(first.pk)
    end_delegation(first, by=world.sue)
    stand_in(world, world.rita, dora)
    assert "in the name of rita; the page said otherwise" in said(client.post(url_of(request), form, follow=True))
    assert (world.status(request), world.refusals(request)) == ("pending", ["PLACE_CHANGED"])
    dora.groups.add(Group.objects.get(name=ROLE))
    assert sent(client, request)["delegation"] == "0"
    client.post(url_of(request), sent(client, request, verdict="approve"))
    taken = Review.objects.get(refused="")
    assert (taken.by, taken.for_user) == (dora, None)


def test_a_form_says_in_whose_name_it_is_filled_in_and_counts_in_no_other(world: World) -> None:
    request, dora = world.ask(flow=OrderParts), somebody("dora")
    first = stand_in(world, world.ron, dora)
    client = client_of("dora")
    assert "You answer in the name of ron, who has delegated to you." in words(page(client, url_of(request)))
    form = sent(client, request, **FILLED)
    end_delegation(first, by=world.sue)
    stand_in(world, world.rita, dora)
    assert "the page said otherwise" in said(client.post(url_of(request), form, follow=True))
    assert world.status(request) == "pending"
    client.post(url_of(request), sent(client, request, **FILLED))
    assert Review.objects.get(refused="").for_user == world.rita


def test_nor_where_several_are_answered_at_once(world: World) -> None:
    request = ask_long(world)
    Pool.objects.get(name=POOL).members.add(world.rita)
    stand_in(world, world.ron, world.rita)
    client = client_of("rita")
    shown = select(client, "deny", request)
    assert "What you are not asked yourself you answer in the name of who has delegated to you: ron" in words(
        shown.content.decode()
    )
    for editor in (world.ron, somebody("ed", role=ROLE)):
        world.decide(request, by=editor)
    assert "PLACE_CHANGED" in words(give(client, "deny", selection(shown), comment="No.").content.decode())
    assert world.status(request) == "pending"


@pytest.mark.parametrize(
    "made_up",
    [{"step": "x"}, {"step": "-1"}, {"step": "9" * 5000}, {"delegation": "-1"}, {"delegation": "9" * 400}, {"step": "7"}],
)
@pytest.mark.parametrize("flow", [None, OrderParts], ids=["approval", "form"])
def test_a_place_that_is_made_up_is_refused(world: World, made_up: dict[str, str], flow: Any) -> None:
    request = world.ask(flow=flow) if flow else world.ask()
    client = client_of("rita")
    form = sent(client, request, verdict="approve", **FILLED) | made_up
    response = client.post(url_of(request), form, follow=True)
    assert response.status_code == 200
    assert "Your answer was not sent." in response.content.decode() or "the page said otherwise" in said(response)
    assert world.status(request) == "pending"


# ---------------------------------------------------------------------- a right on one request


@pytest.mark.parametrize("flow", [None, OrderParts], ids=["approval", "form"])
def test_who_may_answer_one_request_only_is_told_what_became_of_it(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch, flow: Any
) -> None:
    settings.AUTHENTICATION_BACKENDS = objects.BACKENDS
    one, other = (world.ask(flow=flow) if flow else world.ask() for _ in range(2))
    monkeypatch.setattr(objects, "allowed", {one.pk})
    world.otto.user_permissions.clear()
    client = Client()
    client.force_login(world.otto, backend=objects.BACKENDS[0])
    shown = page(client, url_of(one))
    assert '/admin/outlast_approvals/request/"' not in shown, "there is no list for them"
    assert client.get(url_of(other)).status_code == 403
    response = client.post(url_of(one), sent(client, one, verdict="approve", **FILLED), follow=True)
    assert response.status_code == 200
    assert world.status(one) in ("approved", "answered")
    assert client.post(url_of(other), {"verdict": "deny", "digest": other.digest, "comment": "x"}).status_code == 403
    assert world.status(other) == "pending"


# ---------------------------------------------------------------------- written to behind the record


def alter(request: Request, candidate: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE outlast_approval_request DISABLE TRIGGER USER")
        cursor.execute(f"UPDATE outlast_approval_request SET candidate = {candidate} WHERE id = %s", [request.pk])
        cursor.execute("ALTER TABLE outlast_approval_request ENABLE TRIGGER USER")


SHAPES = [
    "'{}'",
    "'[]'",
    "'7'",
    "'null'",
    """'"text"'""",
    """'{"choice": 7, "value": {}}'""",
    """'{"choice": "release"}'""",
    """'{"$outlast": "another codec", "data": "x"}'""",
    """jsonb_set(candidate, '{value,text}', '"Bye."')""",
]


@pytest.mark.parametrize("altered", SHAPES)
def test_a_candidate_of_any_shape_is_shown_and_can_only_be_refused(world: World, altered: str) -> None:
    request, client = world.ask(), client_of("rita")
    alter(request, altered)
    html = page(client, url_of(request))
    assert "The recorded candidate does not hash to this digest. It cannot be approved." in html
    assert 'value="approve"' not in html
    client.post(url_of(request), {"verdict": "approve", "digest": request.digest})
    assert world.refusals(request) == ["CANDIDATE_INVALID"]
    select(client, "deny", request)
    client.post(url_of(request), sent(client, request, verdict="changes", comment="Somebody wrote to the table."))
    world.worker.run()
    second = world.request_of(request.workflow)
    assert second.pk != request.pk
    assert "What changed since revision 1" in page(client, url_of(second))


@pytest.mark.parametrize("altered", SHAPES)
def test_what_was_altered_after_it_was_approved_is_not_executed_and_breaks_no_worker(world: World, altered: str) -> None:
    request, other = world.ask(), world.ask()
    world.decide(request)
    world.decide(other)
    alter(request, altered)
    world.worker.run()
    assert world.status(other) == "consumed", "others go on"
    run = world.workflow(request)
    assert (run.status, run.result) != ("complete", None)
    assert run.status == "waiting"
    assert world.status(request) == "approved"
    page(client_of("rita"), url_of(request))


def test_no_part_is_kept_of_a_candidate_that_somebody_wrote(world: World) -> None:
    request, client = world.ask(FILES, flow=DeleteFiles), client_of("rita")
    alter(request, "jsonb_set(candidate, '{value,files}', '[\"/etc/passwd\", \"b\"]')")
    form = sent(client, request, verdict="narrow", keep=["0"], comment="Only that.")
    assert "does not hash" in said(client.post(url_of(request), form, follow=True))
    assert (world.status(request), world.refusals(request)) == ("pending", ["CANDIDATE_INVALID"])


def test_a_form_that_somebody_wrote_is_not_offered(world: World) -> None:
    request = world.ask(flow=OrderParts)
    alter(request, "jsonb_set(candidate, '{value,fields}', '[]')")
    html = page(client_of("rita"), url_of(request))
    assert "Send this answer" not in html
    assert fill(world, request).code == "CANDIDATE_INVALID"


def test_a_comment_may_be_as_long_as_the_browser_lets_it(world: World) -> None:
    """A browser counts the end of a line once, and sends two characters."""
    request, client = world.ask(), client_of("rita")
    comment = ("x" * 99 + "\r\n") * 39 + "x" * 100
    assert client.post(url_of(request), sent(client, request, verdict="deny", comment=comment)).status_code == 302
    assert Review.objects.get().comment == comment.replace("\r\n", "\n")
    assert len(Review.objects.get().comment) == 4000
    assert ROLE in words(page(client, url_of(request)))
