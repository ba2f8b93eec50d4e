"""One answer for several requests: shown and signed first, judged one by one, and only approved where the flow allows it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.core import signing
from django.test import Client
from django.urls import reverse

from approvals.models import Request, Review
from approvals.services import several
from tests.support.approving import World
from tests.support.browsing import ESCAPED, EVIL, LIST, Forms, client_of, page, permit, said, url_of, words
from tests.support.laddering import PublishPersonally, somebody

pytestmark = pytest.mark.req("F7")

BECAME = "admin:outlast_approvals_request_became"


def together(verb: str) -> str:
    return reverse("admin:outlast_approvals_request_together", args=[verb])


def select(client: Client, verb: str, *requests: Request, queue: str = "pending", **more: Any) -> Any:
    chosen = {"action": f"{verb}_selected", "_selected_action": [request.pk for request in requests], **more}
    return client.post(reverse(LIST) + f"?queue={queue}", chosen)


def selection(response: Any) -> str:
    return Forms(response.content.decode()).values["selection"]


def give(client: Client, verb: str, frozen: str, **more: Any) -> Any:
    return client.post(together(verb), {"selection": frozen, **more}, follow=True)


def personally(world: World, **more: Any) -> Request:
    """A request that its flow lets be approved in bulk."""
    return world.ask(flow=PublishPersonally, input={"author": "rita", **more.pop("input", {})}, **more)


# ---------------------------------------------------------------------- deny


def test_nothing_is_changed_by_selecting_and_each_is_denied_with_the_reason(world: World) -> None:
    one, two = world.ask(goal="One"), world.ask(goal="Two")
    client = client_of("rita")
    shown = select(client, "deny", one, two)
    text = words(shown.content.decode())
    assert "2 requests" in text
    assert text.count("sha256:") == 2
    assert not Review.objects.exists()
    response = give(client, "deny", selection(shown), comment="Not today.")
    assert response.redirect_chain == [(reverse(BECAME), 302)]
    assert "2 done, 0 refused" in words(response.content.decode())
    assert {world.status(one), world.status(two)} == {"denied"}
    assert set(Review.objects.values_list("comment", "by__username")) == {("Not today.", "rita")}


def test_a_reason_is_needed_and_the_selection_stays(world: World) -> None:
    one, client = world.ask(), client_of("rita")
    frozen = selection(select(client, "deny", one))
    response = give(client, "deny", frozen, comment="  ")
    assert "Say why: the next step reads your comment" in response.content.decode()
    assert 'aria-invalid="true"' in response.content.decode()
    assert selection(response) == frozen
    assert world.status(one) == "pending"
    give(client, "deny", selection(response), comment="No.")
    assert world.status(one) == "denied"


def test_each_is_judged_by_itself_and_the_result_says_why(world: World) -> None:
    mine, answered, own = world.ask(goal="Mine"), world.ask(goal="Answered"), world.ask(goal="Own", by=world.rita)
    client = client_of("rita")
    frozen = selection(select(client, "deny", mine, answered, own))
    world.decide(answered, by=world.ron)
    text = words(give(client, "deny", frozen, comment="No.").content.decode())
    assert "1 done, 2 refused" in text
    assert "Mine done Denied." in text
    assert "Answered ANSWERED_BEFORE ron answered this request first" in text
    assert "Own SELF_APPROVAL You are accountable for this workflow" in text
    assert [world.status(one) for one in (mine, answered, own)] == ["denied", "approved", "pending"]


def test_the_same_again_changes_nothing(world: World) -> None:
    one, client = world.ask(), client_of("rita")
    frozen = selection(select(client, "deny", one))
    give(client, "deny", frozen, comment="No.")
    assert "already so You gave this very answer before." in words(give(client, "deny", frozen, comment="No.").content.decode())
    assert Review.objects.count() == 1


# ---------------------------------------------------------------------- approve


def test_approved_is_only_what_its_flow_lets_be_approved_in_bulk(world: World) -> None:
    bulk, alone = personally(world, goal="In bulk"), world.ask(goal="Alone")
    client = client_of("rita")
    shown = select(client, "approve", bulk, alone)
    text = words(shown.content.decode())
    assert f"In bulk release {bulk.digest}" in text, "with the choice and the digest"
    assert "Selected, but left out" in text
    assert "1 request" in text
    response = give(client, "approve", selection(shown))
    assert "1 done, 0 refused" in words(response.content.decode())
    assert (world.status(bulk), world.status(alone)) == ("approved", "pending")


def test_where_none_may_be_approved_in_bulk_nothing_is_offered(world: World) -> None:
    alone, client = world.ask(), client_of("rita")
    response = client.post(reverse(LIST), {"action": "approve_selected", "_selected_action": [alone.pk]}, follow=True)
    assert "None of these can be approved together" in said(response)


def test_a_selection_that_names_one_anyway_is_refused_for_it(world: World) -> None:
    """Somebody who holds the key of the project can sign what they like; the service still asks the request."""
    alone = world.ask()
    frozen = several.freeze([several.Item(alone.pk, alone.digest, 1)], verb="approve", user=world.rita)
    text = words(give(client_of("rita"), "approve", frozen).content.decode())
    assert "NOT_IN_BULK Its flow wants it to be read and approved on its own page." in text
    assert (world.status(alone), Review.objects.count()) == ("pending", 0)


@pytest.mark.req("F3")
def test_a_stale_digest_in_a_selection_approves_nothing(world: World) -> None:
    bulk = personally(world)
    frozen = several.freeze([several.Item(bulk.pk, "sha256:old", 1)], verb="approve", user=world.rita)
    assert "STALE_CANDIDATE" in words(give(client_of("rita"), "approve", frozen).content.decode())
    assert (world.status(bulk), world.refusals(bulk)) == ("pending", ["STALE_CANDIDATE"])


# ---------------------------------------------------------------------- a selection is what was shown, for who was shown it


def altered(frozen: str) -> str:
    """Another list under the old signature."""
    _body, stamp, signature = frozen.rsplit(":", 2)
    made = signing.loads(frozen, salt=several.SALT)
    forged = signing.dumps({**made, "items": []}, key="another key", salt=several.SALT, compress=True)
    return ":".join([forged.rsplit(":", 2)[0], stamp, signature])


@pytest.mark.parametrize(
    "how", ["altered", "signed with another key", "empty", "no text", "of another verb", "of another user", "of another salt"]
)
def test_what_is_not_as_it_was_shown_is_refused_as_a_whole(world: World, how: str) -> None:
    one, client = world.ask(), client_of("rita")
    frozen = selection(select(client, "deny", one))
    item = several.Item(one.pk, one.digest, 1)
    made = {
        "altered": altered(frozen),
        "signed with another key": signing.dumps({"verb": "deny"}, key="another key", salt=several.SALT),
        "empty": "",
        "no text": "\x00\udcff".encode("utf-8", "replace").decode(),
        "of another verb": several.freeze([item], verb="assign", user=world.rita),
        "of another user": several.freeze([item], verb="deny", user=world.ron),
        "of another salt": signing.dumps({"verb": "deny", "user": str(world.rita.pk), "items": []}, salt="x"),
    }[how]
    response = give(client, "deny", made, comment="No.")
    assert response.redirect_chain == [(reverse(LIST), 302)]
    assert "Nothing was changed: select again." in said(response)
    assert (world.status(one), Review.objects.count()) == ("pending", 0)


def test_one_that_is_older_than_an_hour_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, client = world.ask(), client_of("rita")
    then = time.time() - several.MAX_AGE - 5
    with monkeypatch.context() as past:
        past.setattr("django.core.signing.time.time", lambda: then)
        frozen = several.freeze([several.Item(one.pk, one.digest, 1)], verb="deny", user=world.rita)
    assert "more than an hour old" in said(give(client, "deny", frozen, comment="No."))
    assert world.status(one) == "pending"


def test_at_most_a_hundred(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert several.MAX_AT_ONCE == 100
    monkeypatch.setattr(several, "MAX_AT_ONCE", 2)
    three = [world.ask() for _ in range(3)]
    client = client_of("rita")
    response = client.post(
        reverse(LIST),
        {"action": "deny_selected", "_selected_action": [one.pk for one in three]},
        follow=True,
    )
    assert "At most 2 requests at a time. Nothing was changed; select fewer." in said(response)
    across = client.post(
        reverse(LIST),
        {"action": "deny_selected", "_selected_action": [three[0].pk], "select_across": "1"},
        follow=True,
    )
    assert "At most 2 requests at a time." in said(across)


# ---------------------------------------------------------------------- rights


def test_who_only_views_has_no_actions_and_cannot_post_one(world: World) -> None:
    one = world.ask()
    vera, rita = client_of("vera"), client_of("rita")
    html = page(vera, reverse(LIST), queue="pending")
    assert 'name="action"' not in html
    assert 'name="_selected_action"' not in html
    frozen = several.freeze([several.Item(one.pk, one.digest, 1)], verb="deny", user=world.vera)
    for verb in ("deny", "approve", "assign"):
        select(vera, verb, one)
        assert vera.post(together(verb), {"selection": frozen, "comment": "No."}).status_code == 403
    html = page(rita, reverse(LIST), queue="pending")
    assert "Deny selected requests" in html
    assert "Say who looks at selected" not in html, "that needs a right of its own"
    assert not Review.objects.exists()


@pytest.mark.req("F3")
def test_a_right_that_was_taken_meanwhile_counts(world: World) -> None:
    one, client = world.ask(), client_of("rita")
    frozen = selection(select(client, "deny", one))
    world.rita.user_permissions.clear()
    assert client.post(together("deny"), {"selection": frozen, "comment": "No."}).status_code == 403
    assert world.status(one) == "pending"


def test_no_get_and_no_post_without_the_token(world: World) -> None:
    one, client = world.ask(), client_of("rita")
    frozen = selection(select(client, "deny", one))
    for method in ("get", "head", "put", "delete"):
        assert getattr(client, method)(together("deny"), {"selection": frozen, "comment": "No."}).status_code == 405
    assert client.post(together("nothing"), {"selection": frozen}).status_code == 405
    strict = client_of("rita", enforce_csrf_checks=True)
    assert strict.post(together("deny"), {"selection": frozen, "comment": "No."}).status_code == 403
    assert world.status(one) == "pending"


# ---------------------------------------------------------------------- who looks at them


def test_several_are_assigned_to_one_who_may_answer(world: World) -> None:
    one, two, own = world.ask(), world.ask(), world.ask(by=world.ron)
    permit(world.vera, "assign_request")
    somebody("nick")
    client = client_of("vera")
    shown = select(client, "assign", one, two, own)
    assert ">ron</option>" in shown.content.decode()
    assert ">nick</option>" not in shown.content.decode()
    text = words(give(client, "assign", selection(shown), to=world.ron.pk).content.decode())
    assert "2 done, 1 refused" in text
    assert "SELF_APPROVAL" in text
    labels = Request.objects.order_by("pk").values_list("claimed_label", flat=True)
    assert list(labels) == ["ron", "ron", ""]


def test_nobody_else_can_be_chosen(world: World) -> None:
    one = world.ask()
    permit(world.vera, "assign_request")
    client = client_of("vera")
    frozen = selection(select(client, "assign", one))
    response = give(client, "assign", frozen, to=world.otto.pk)
    assert "Choose one of the people on the list" in response.content.decode()
    assert Request.objects.get().claimed_label == ""


# ---------------------------------------------------------------------- text


def test_whatever_a_model_wrote_is_data_here_too(world: World) -> None:
    request = personally(world, goal=EVIL)
    client = client_of("rita")
    shown = select(client, "approve", request)
    response = give(client, "approve", selection(shown))
    for html in (shown.content.decode(), response.content.decode()):
        assert ESCAPED in html
        assert "<script>alert" not in html
        assert "\u202e" not in html
    assert url_of(request) in response.content.decode()


def test_the_result_is_ones_own(world: World) -> None:
    one, client = world.ask(goal="A secret"), client_of("rita")
    give(client, "deny", selection(select(client, "deny", one)), comment="No.")
    assert "A secret" in page(client, reverse(BECAME))
    assert "Nothing so far." in page(client_of("ron"), reverse(BECAME))
