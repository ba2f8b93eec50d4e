"""Accounts that go, names with something hidden in them, and moments in other time zones."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from approvals.api import assign, delegate, end_delegation
from approvals.models import Delegation, Notice, Pool, Request, Review
from flows.services.clock import now
from tests.admin.test_delegation_pages import ADD, later
from tests.admin.test_delegation_pages import LIST as DELEGATIONS
from tests.admin.test_together_pages import select
from tests.support import noticing
from tests.support.approving import ROLE, World
from tests.support.browsing import LIST, client_of, page, permit, said, url_of, words
from tests.support.laddering import POOL, ask_long, somebody

pytestmark = pytest.mark.req("F5", "F7")

USERS = "admin:auth_user"


def stand_in(world: World, giver: Any, taker: Any) -> Delegation:
    return delegate(giver, taker, until=now("default") + timedelta(days=1), reason="On leave", by=world.sue)


# ---------------------------------------------------------------------- who is gone


@pytest.mark.parametrize("how", ["each", "several at once"])
def test_the_admin_may_delete_everybody_and_every_page_still_says_who_it_was(world: World, how: str) -> None:
    noticing.with_addresses(world)
    pending, decided = ask_long(world), world.ask()
    stand_in(world, world.rita, world.ron)
    world.decide(decided)
    world.decide(pending)
    assign(pending, to=world.ron, by=world.ron)
    noticing.send()
    client = client_of("sue")
    gone = [world.rita, world.ron, world.robin]
    if how == "each":
        for user in gone:
            assert client.post(reverse(f"{USERS}_delete", args=[user.pk]), {"post": "yes"}).status_code == 302
    else:
        chosen = {"action": "delete_selected", "_selected_action": [user.pk for user in gone], "post": "yes"}
        assert client.post(reverse(f"{USERS}_changelist"), chosen).status_code == 302
    assert not get_user_model().objects.filter(pk__in=[user.pk for user in gone]).exists()
    assert {review.by_label for review in Review.objects.all()} == {"rita"}
    for target in (
        url_of(pending),
        url_of(decided),
        url_of(pending, "assign"),
        reverse(LIST) + "?queue=all",
        reverse(DELEGATIONS) + "?holds=all",
        reverse("admin:outlast_approvals_delegation_change", args=[Delegation.objects.get().pk]),
        reverse("admin:outlast_approvals_notice_changelist"),
        reverse("admin:outlast_approvals_request_history", args=[decided.pk]),
        reverse("admin:outlast_flows_workflow_change", args=[pending.workflow_id]),
        reverse("admin:index"),
    ):
        html = page(client, target)
        assert "None" not in words(html.partition('id="content-start"')[2]).replace("None so far", "").replace(
            "None available", ""
        )
    assert "rita" in page(client, url_of(decided))
    assert Notice.objects.exclude(user_label="").exists()
    world.worker.run()


def test_a_role_or_pool_that_is_gone_leaves_nobody_and_no_broken_page(world: World) -> None:
    request = ask_long(world)
    client = client_of("sue")
    assert (
        client.post(reverse("admin:auth_group_delete", args=[Group.objects.get(name=ROLE).pk]), {"post": "yes"}).status_code
        == 302
    )
    pool = Pool.objects.get(name=POOL)
    delete = reverse("admin:outlast_approvals_pool_delete", args=[pool.pk])
    assert "Are you sure" in page(client, delete)
    assert client.post(delete, {"post": "yes"}).status_code == 302
    for name in ("sue", "rita"):
        for target in (url_of(request), reverse(LIST), reverse(LIST) + "?queue=pending&_facets=True"):
            page(client_of(name), target)
    assert "Editors" in page(client, url_of(request))
    assert "No people" not in page(client, url_of(request, "assign"))


# ---------------------------------------------------------------------- names


HIDDEN = "\u202e\u200b\u2066"
HIDES = re.compile(f"[{HIDDEN}]")


def test_what_hides_in_names_is_shown_wherever_a_name_is(world: World) -> None:
    """Names of accounts, groups and pools made by code, which no form of the admin has checked. What a form sends back stays as it is."""
    group = Group.objects.create(name=f"edi{HIDDEN}tors")
    world.ron.groups.add(group)
    pool = Pool.objects.create(name=f"law{HIDDEN}yers", note=f"No{HIDDEN}te")
    evil = somebody(f"da{HIDDEN}ve", role=ROLE, pool=pool.name, first_name=f"Da{HIDDEN}ve")
    request, other = world.ask(goal=f"Go{HIDDEN}al"), world.ask(by=evil)
    made = stand_in(world, evil, world.vera)
    assign(request, to=evil, by=evil)
    world.decide(other, "deny", comment=f"N{HIDDEN}o.")
    permit(world.rita, "assign_request", "delegate_any", "delegate_own")
    permit(world.vera, "view_pool")
    rita, sue = client_of("rita"), client_of("sue")
    given = {"giver": evil.username, "to": "ron", "until": later(days=2), "reason": f"Le{HIDDEN}ave"}
    added = rita.post(reverse(ADD), given, follow=True)
    assert added.redirect_chain
    change = reverse("admin:outlast_approvals_delegation_change", args=[made.pk])
    revoke = reverse("admin:outlast_approvals_delegation_revoke", args=[made.pk])
    shown = {
        "added": added.content.decode(),
        "revoked": sue.post(revoke, follow=True).content.decode(),
        "together": select(rita, "assign", request).content.decode(),
        "recent": page(rita, reverse("admin:index")),
        "pool, read only": page(client_of("vera"), reverse("admin:outlast_approvals_pool_change", args=[pool.pk])),
    }
    for target in (
        url_of(request),
        url_of(request, "assign"),
        url_of(other),
        reverse(LIST) + "?queue=all&_facets=True",
        reverse(DELEGATIONS) + "?holds=all",
        change,
        reverse("admin:outlast_approvals_delegation_history", args=[made.pk]),
        reverse(ADD),
        reverse("admin:outlast_approvals_pool_changelist"),
        reverse("admin:outlast_approvals_pool_change", args=[pool.pk]),
        reverse("admin:outlast_approvals_pool_add"),
        reverse("admin:outlast_approvals_pool_delete", args=[pool.pk]),
        reverse("admin:outlast_approvals_pool_history", args=[pool.pk]),
        reverse("admin:outlast_approvals_notice_changelist"),
    ):
        shown[target] = page(sue if "_pool_" in target or "/pool/" in target else rita, target)
    for name, html in shown.items():
        seen = re.sub(r"<textarea.*?</textarea>", "", re.sub(r' value="[^"]*"', "", html), flags=re.DOTALL)
        found = HIDES.search(seen)
        assert found is None, (name, seen[max(found.start() - 150, 0) : found.end() + 50])  # type: ignore[union-attr]


def test_nobody_is_suggested_whose_name_looks_like_anothers(world: World) -> None:
    somebody("ron\u200b")
    permit(world.rita, "delegate_own")
    html = page(client_of("rita"), reverse(ADD))
    assert '<option value="ron">' in html
    assert "\u200b" not in html


# ---------------------------------------------------------------------- delegations


def test_who_arranges_it_for_others_only_is_told_what_they_lack(world: World) -> None:
    permit(world.vera, "delegate_any")
    client = client_of("vera")
    assert 'name="giver" value=' not in page(client, reverse(ADD)), "their own name is not proposed"
    response = client.post(reverse(ADD), {"giver": "vera", "to": "ron", "until": later(days=1), "reason": "x"})
    assert response.status_code == 200
    assert "outlast_approvals.delegate_own" in response.content.decode()
    assert not Delegation.objects.exists()


def test_a_form_that_is_sent_twice_makes_one_delegation(world: World) -> None:
    """Who revokes it would otherwise find that another still holds."""
    permit(world.rita, "delegate_own")
    client, given = client_of("rita"), {"to": "ron", "until": later(days=2), "reason": "On leave"}
    for _ in range(2):
        assert client.post(reverse(ADD), given).status_code == 302
    one = Delegation.objects.get()
    end_delegation(one, by=world.rita)
    client.post(reverse(ADD), given)
    assert Delegation.objects.count() == 2, "what was revoked may be made again"
    client.post(reverse(ADD), {**given, "role": ROLE})
    client.post(reverse(ADD), {**given, "until": later(days=3)})
    assert Delegation.objects.count() == 4, "another is another"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_moments_are_of_the_zone_that_the_form_names(world: World, settings: Any, zone: str) -> None:
    settings.TIME_ZONE = zone
    permit(world.rita, "delegate_own")
    client = client_of("rita")
    with timezone.override(zone):
        assert f"Time zone: {timezone.get_current_timezone_name()}." in words(page(client, reverse(ADD)))
        until = timezone.localtime(now("default") + timedelta(days=2)).replace(hour=18, minute=30, second=0, microsecond=0)
    given = {"to": "ron", "reason": "On leave", "until": until.strftime("%Y-%m-%dT%H:%M")}
    assert "6:30 p.m." in said(client.post(reverse(ADD), given, follow=True))
    assert Delegation.objects.get().ends_at == until
    for wrong in ("0001-01-01T00:00", "9999-12-31T23:59", "2027-03-14T02:30", "2027-02-30T00:00", "10000-01-01T00:00", "\u0661"):
        for name in ("starts", "until"):
            response = client.post(reverse(ADD), {**given, "role": ROLE, name: wrong})
            assert response.status_code in (200, 302), (name, wrong)
    assert Request.objects.count() == 0


# ---------------------------------------------------------------------- what is not theirs costs them nothing


def test_who_may_not_see_requests_has_none_counted(world: World, django_assert_num_queries: Any) -> None:
    world.ask()
    world.otto.user_permissions.clear()
    permit(world.otto, "view_pool")
    client = Client()
    client.force_login(world.otto)
    for target in (reverse("admin:index"), reverse("admin:outlast_approvals_pool_changelist")):
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as captured:
            page(client, target)
        assert not [one for one in captured.captured_queries if "outlast_approval_request" in one["sql"]], target
