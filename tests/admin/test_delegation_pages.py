"""Delegations in the admin: made by a form with clear errors, seen by whom they concern, revoked by a button."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from approvals.api import delegate
from approvals.models import Delegation
from flows.services.clock import now
from tests.support.approving import ROLE, World
from tests.support.browsing import ESCAPED, EVIL, client_of, page, permit, said, words
from tests.support.laddering import somebody

pytestmark = pytest.mark.req("F5", "F7")

ADD, LIST = "admin:outlast_approvals_delegation_add", "admin:outlast_approvals_delegation_changelist"


def url(name: str, one: Delegation) -> str:
    return reverse(f"admin:outlast_approvals_delegation_{name}", args=[one.pk])


def later(**span: float) -> str:
    """As the browser's own field sends it."""
    return timezone.localtime(now("default") + timedelta(**span)).strftime("%Y-%m-%dT%H:%M")


def made(world: World, *, giver: Any = None, to: Any = None, reason: str = "On leave", **more: Any) -> Delegation:
    giver = giver or world.rita
    permit(giver, "delegate_own")
    return delegate(giver, to or world.ron, until=now("default") + timedelta(days=2), reason=reason, by=giver, **more)


def test_one_gives_ones_own_place(world: World) -> None:
    permit(world.rita, "delegate_own")
    client = client_of("rita")
    html = page(client, reverse(ADD))
    assert 'name="giver"' not in html, "only who arranges it for others chooses for whom"
    assert '<option value="ron">' in html
    given = {"to": "ron", "until": later(days=2), "role": ROLE, "reason": "On leave"}
    response = client.post(reverse(ADD), given, follow=True)
    assert "ron stands in for rita until" in said(response)
    one = Delegation.objects.get()
    assert (one.giver, one.taker, one.role, one.made_by_label) == (world.rita, world.ron, ROLE, "rita")
    assert "rita ron now" in words(response.content.decode())
    assert f"role {ROLE}" in words(response.content.decode())
    assert LogEntry.objects.get().action_flag == 1


def test_for_others_it_needs_its_own_right(world: World) -> None:
    permit(world.rita, "delegate_own")
    given = {"giver": "ron", "to": "robin", "until": later(days=2), "reason": "Ill"}
    client_of("rita").post(reverse(ADD), given)
    assert Delegation.objects.get().giver == world.rita, "whatever a browser sends, it is one's own place"
    permit(world.vera, "delegate_any")
    client = client_of("vera")
    assert 'name="giver"' in page(client, reverse(ADD))
    assert "robin stands in for ron until" in said(client.post(reverse(ADD), given, follow=True))


def test_without_a_right_there_is_no_form(world: World) -> None:
    client = client_of("ron")
    assert reverse(ADD) not in page(client, reverse(LIST))
    for method in (client.get, client.post):
        assert method(reverse(ADD), {"to": "rita", "until": later(days=1), "reason": "x"}).status_code == 403
    assert not Delegation.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"to": "nobody at all"}, "There is no active account of that name."),
        ({"to": "rita"}, "Nobody stands in for themselves: choose another person."),
        ({"until": "2001-01-01T00:00"}, "A delegation ends after it begins, and not in the past."),
        ({"until": "2199-01-01T00:00"}, "A delegation holds for a year at most; make a new one then."),
        ({"until": "soon"}, "Give a day and a time"),
        ({"until": ""}, "Give a day and a time"),
        ({"reason": " "}, "Say why"),
        ({"role": "no such role"}, "no such role is not one of the available choices"),
        ({"flow": "no-such-flow"}, "is not one of the available choices"),
        ({"to": "a\x00b"}, "Null characters are not allowed."),
    ],
)
def test_what_is_wrong_is_said(world: World, wrong: dict[str, str], told: str) -> None:
    permit(world.rita, "delegate_own")
    given = {"to": "ron", "until": later(days=2), "reason": "On leave", **wrong}
    response = client_of("rita").post(reverse(ADD), given)
    assert response.status_code == 200
    assert told in response.content.decode()
    assert "Nothing was made." in response.content.decode()
    assert not Delegation.objects.exists()


def test_it_is_seen_by_whom_it_concerns(world: World) -> None:
    one = made(world)
    other = made(world, giver=world.robin, to=somebody("dora"))
    for user in (world.rita, world.ron):
        user.user_permissions.remove(*user.user_permissions.filter(codename="view_delegation"))
    for name, seen in (("rita", {one.pk}), ("ron", {one.pk}), ("dora", {other.pk}), ("vera", {one.pk, other.pk})):
        html = page(client_of(name), reverse(LIST))
        assert {pk for pk in (one.pk, other.pk) if url("change", Delegation(pk=pk)) in html} == seen, name
        for pk in (one.pk, other.pk):
            answer = client_of(name).get(url("change", Delegation(pk=pk)))
            assert (answer.status_code == 200) == (pk in seen), (name, pk)
    assert client_of("otto").get(reverse(LIST)).status_code == 200, "who has view permissions"
    world.otto.user_permissions.clear()
    assert client_of("otto").get(reverse(LIST)).status_code == 403


def test_the_list_can_be_narrowed(world: World) -> None:
    one = made(world)
    two = made(world, giver=world.ron, to=world.rita, starts=now("default") + timedelta(days=1))
    client = client_of("rita")

    def listed(**query: str) -> set[int]:
        html = page(client, reverse(LIST), **query)
        return {row.pk for row in (one, two) if url("change", row) in html}

    assert listed() == {one.pk}
    assert listed(holds="later") == {two.pk}
    assert listed(holds="all") == {one.pk, two.pk}
    assert listed(holds="all", whose="given") == {one.pk}
    assert listed(holds="all", whose="taken") == {two.pk}
    client.post(url("revoke", one))
    assert listed(holds="over") == {one.pk}


def test_it_is_revoked_by_who_it_concerns_and_nobody_else(world: World) -> None:
    one, dora = made(world), somebody("dora")
    assert url("revoke", one) not in page(client_of("vera"), url("change", one))
    for name in ("vera", "dora"):
        assert client_of(name).post(url("revoke", one)).status_code == 403
    assert dora.pk not in (one.giver_id, one.taker_id)
    assert client_of("ron", enforce_csrf_checks=True).post(url("revoke", one)).status_code == 403
    for method in ("get", "head", "put"):
        assert getattr(client_of("ron"), method)(url("revoke", one)).status_code == 405
    assert Delegation.objects.get().revoked_at is None
    client = client_of("ron")
    assert url("revoke", one) in page(client, url("change", one))
    assert "Revoked: it holds no longer." in said(client.post(url("revoke", one), follow=True))
    assert "It was over already." in said(client.post(url("revoke", one), follow=True))
    assert url("revoke", one) not in page(client, url("change", one))
    assert Delegation.objects.get().revoked_by_label == "ron"
    assert LogEntry.objects.filter(change_message="Revoked.").count() == 1


def test_nobody_changes_or_deletes_one(world: World) -> None:
    one, client = made(world), client_of("sue")
    assert client.post(url("change", one), {"reason": "Other"}).status_code == 403
    assert client.post(url("delete", one), {"post": "yes"}).status_code == 403
    assert Delegation.objects.get().reason == "On leave"


def test_what_people_wrote_is_data(world: World) -> None:
    one = made(world, reason=EVIL)
    html = page(client_of("sue"), url("change", one))
    assert ESCAPED in html
    assert "<script>alert" not in html
    assert "\u202e" not in html
