"""Delegation, claims, and approvals that are taken back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from approvals.api import (
    BadDelegation,
    NobodyAnswers,
    UnknownDelegation,
    UnknownRequest,
    assign,
    decide,
    delegate,
    end_delegation,
    revoke,
)
from approvals.models import Delegation, Request, Review
from approvals.services import inbox
from flows.core.misuse import NotPermitted, ReasonMissing
from flows.services.clock import now
from tests.support.approving import ROLE, World
from tests.support.laddering import POOL, ask_long, somebody

pytestmark = pytest.mark.django_db(transaction=True)


def permit(user: Any, *names: str) -> None:
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="outlast_approvals", codename__in=names))


def given(world: World, giver: Any, taker: Any, **more: Any) -> Delegation:
    permit(giver, "delegate_own")
    options = {"until": now("default") + timedelta(days=2), "reason": "On leave", "by": giver, **more}
    return delegate(giver, taker, **options)


def mine(user: Any) -> list[int]:
    return list(inbox.eligible(Request.objects.all(), user).values_list("pk", flat=True))


@pytest.mark.req("F5")
def test_who_stands_in_answers_in_the_others_name(world: World) -> None:
    request, dora = world.ask(), somebody("dora")
    assert (world.decide(request, by=dora).code, mine(dora)) == ("NOT_ASKED", [])
    made = given(world, world.rita, dora)
    assert mine(dora) == [request.pk]
    assert world.decide(request, by=dora).ends
    review = Review.objects.get(refused="")
    assert (review.by, review.by_label, review.for_user, review.for_label) == (dora, "dora", world.rita, "rita")
    assert review.delegation_id == made.pk


@pytest.mark.req("F3", "F5")
def test_it_gives_a_place_and_no_permission(world: World) -> None:
    request, dora = world.ask(), somebody("dora", permissions=())
    given(world, world.rita, dora)
    assert world.decide(request, by=dora).code == "NOT_PERMITTED"
    permit(dora, "answer_request")
    world.rita.user_permissions.clear()
    assert (world.decide(request, by=dora).code, mine(dora)) == ("NOT_ASKED", []), "who gave it may not answer any more"


@pytest.mark.req("F3", "F5")
def test_nobody_approves_their_own_work_through_somebody_else(world: World) -> None:
    request, dora = world.ask(), somebody("dora")
    given(world, world.robin, dora)
    assert world.decide(request, by=dora).code == "SELF_APPROVAL"
    assert mine(dora) == []
    given(world, world.rita, world.robin)
    assert world.decide(request, by=world.robin).code == "SELF_APPROVAL"
    assert mine(world.robin) == []


@pytest.mark.req("F3", "F5")
def test_nobody_counts_twice_through_somebody_else(world: World) -> None:
    request, dora = ask_long(world), somebody("dora")
    given(world, world.rita, dora)
    world.decide(request, by=dora)
    assert world.decide(request, by=world.rita).code == "COUNTED_BEFORE"
    assert mine(world.rita) == []
    given(world, world.ron, dora)
    assert world.decide(request, by=dora, digest=request.digest).code == "already"
    assert world.decide(request, "deny", by=dora, comment="For Ron.").code == "COUNTED_BEFORE"
    assert mine(dora) == []
    assert world.decide(request, by=world.ron).code == "accepted"


def test_in_the_own_name_where_there_is_a_place(world: World) -> None:
    request = ask_long(world)
    given(world, world.ron, world.rita)
    world.decide(request, by=world.rita)
    assert Review.objects.get(refused="").for_user is None
    assert world.decide(request, by=world.ron).code == "accepted"


@pytest.mark.parametrize(
    ("scope", "holds"),
    [
        ({}, True),
        ({"role": ROLE}, True),
        ({"role": "another"}, False),
        ({"pool": POOL}, False),
        ({"flow": "publish-news"}, True),
        ({"flow": "another"}, False),
        ({"role": ROLE, "flow": "another"}, False),
    ],
)
def test_it_holds_for_what_it_names(world: World, scope: dict[str, str], *, holds: bool) -> None:
    request, dora = world.ask(), somebody("dora")
    given(world, world.rita, dora, **scope)
    assert mine(dora) == ([request.pk] if holds else [])
    assert (world.decide(request, by=dora).code == "accepted") is holds


def test_it_begins_and_ends_at_its_time(world: World) -> None:
    dora, moment = somebody("dora"), now("default")
    given(world, world.rita, dora, starts=moment + timedelta(hours=1), until=moment + timedelta(hours=3))
    request = world.ask()
    assert (mine(dora), world.decide(request, by=dora).code) == ([], "NOT_ASKED")
    world.clock.move(hours=2)
    assert mine(dora) == [request.pk]
    world.clock.move(hours=1, seconds=1)
    assert (mine(dora), world.decide(request, by=dora).code) == ([], "NOT_ASKED")


def test_it_is_revoked_at_once_and_kept(world: World) -> None:
    request, dora = world.ask(), somebody("dora")
    made = given(world, world.rita, dora)
    with pytest.raises(NotPermitted):
        end_delegation(made, by=world.vera)
    assert end_delegation(made, by=dora)
    assert not end_delegation(made.pk, by=world.rita), "it is over"
    assert (mine(dora), world.decide(request, by=dora).code) == ([], "NOT_ASKED")
    for change in ("UPDATE outlast_delegation SET taker_id = giver_id", "DELETE FROM outlast_delegation"):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(change)
    with pytest.raises(UnknownDelegation, match="There is no delegation 4711"):
        end_delegation(4711, by=world.rita)


def test_bad_delegations_are_refused_in_words(world: World) -> None:
    moment = now("default")
    with pytest.raises(BadDelegation, match="Nobody stands in for themselves"):
        given(world, world.rita, world.rita)
    with pytest.raises(BadDelegation, match="ends after it begins"):
        given(world, world.rita, world.ron, until=moment - timedelta(days=1))
    with pytest.raises(BadDelegation, match="a year at most"):
        given(world, world.rita, world.ron, until=moment + timedelta(days=500))
    with pytest.raises(BadDelegation, match="time zone"):
        given(world, world.rita, world.ron, until=timezone.make_naive(moment) + timedelta(days=1))
    with pytest.raises(ReasonMissing):
        given(world, world.rita, world.ron, reason=" ")
    with pytest.raises(NotPermitted):
        given(world, world.rita, world.ron, by=world.ron)
    permit(world.ron, "delegate_any")
    assert given(world, world.rita, world.ron, by=world.ron).made_by_label == "ron"


def test_deleting_people_keeps_what_was_said(world: World) -> None:
    request, dora = world.ask(), somebody("dora")
    given(world, world.rita, dora)
    world.decide(request, by=dora)
    for name in ("rita", "dora"):
        get_user_model().objects.get(username=name).delete()
    review, made = Review.objects.get(), Delegation.objects.get()
    assert (review.by_label, review.for_label, review.by, review.for_user) == ("dora", "rita", None, None)
    assert (made.giver_label, made.taker_label, made.giver, made.taker) == ("rita", "dora", None, None)


@pytest.mark.req("F5")
def test_an_approval_is_taken_back_before_it_is_used(world: World) -> None:
    request = world.ask()
    world.decide(request)
    with pytest.raises(ReasonMissing):
        revoke(request, reason="", by=world.rita)
    with pytest.raises(NotPermitted):
        revoke(request, reason="I do not like it.", by=world.ron)
    assert revoke(request, reason="A mistake in the text.", by=world.rita)
    assert world.status(request) == "revoked"
    assert revoke(request, reason="A mistake in the text.", by=world.rita).code == "already"
    assert world.decide(request, by=world.ron).code == "REQUEST_REVOKED"
    world.worker.run()
    fresh = world.request_of(world.workflow(request))
    assert (fresh.pk != request.pk, fresh.status) == (True, "pending"), "the gate asks anew"
    assert world.workflow(request).status == "waiting"


def test_what_is_used_up_is_not_taken_back(world: World) -> None:
    request = world.ask()
    assert revoke(request, reason="Too early.", by=grant(world)).code == "TOO_LATE"
    world.decide(request)
    world.worker.run()
    late = revoke(request, reason="Too late.", by=grant(world))
    assert (late.code, world.status(request)) == ("TOO_LATE", "consumed")


def grant(world: World) -> Any:
    permit(world.ron, "revoke_request")
    return world.ron


def test_who_looks_at_it_is_a_marker_and_locks_nobody_out(world: World) -> None:
    request = world.ask()
    assert assign(request, to=world.rita, by=world.rita)
    row = Request.objects.get(pk=request.pk)
    assert (row.claimed_by, row.claimed_label, row.claimed_at is not None) == (world.rita, "rita", True)
    with pytest.raises(NotPermitted):
        assign(request, to=world.rita, by=world.ron)
    assert assign(request, to=world.vera, by=world.vera).code == "NOT_PERMITTED"
    assert assign(request, to=world.robin, by=world.robin).code == "SELF_APPROVAL"
    permit(world.vera, "assign_request")
    assert assign(request, to=world.ron, by=world.vera)
    assert assign(request, to=None, by=world.ron)
    assert Request.objects.get(pk=request.pk).claimed_by is None
    assert assign(request, to=world.rita, by=world.rita)
    assert world.decide(request, by=world.ron).ends
    assert assign(request, to=None, by=world.rita).code == "NOT_WAITING"


@pytest.mark.parametrize("number", [10**30, -1, "nonsense", None, 0, True, 0.0, 0.5])
def test_what_is_no_request_is_said_so(world: World, number: Any) -> None:
    if isinstance(number, float):
        number += world.ask().pk  # nearly the id of one
    for act in (
        lambda: decide(number, verdict="approve", digest="d", by=world.rita),
        lambda: revoke(number, reason="Why not.", by=world.rita),
        lambda: assign(number, to=world.rita, by=world.rita),
    ):
        with pytest.raises(UnknownRequest, match="There is no approval request"):
            act()


@pytest.mark.parametrize("number", [10**30, -1, "nonsense", None])
def test_what_is_no_delegation_is_said_so(world: World, number: Any) -> None:
    with pytest.raises(UnknownDelegation, match="There is no delegation"):
        end_delegation(number, by=world.rita)


@pytest.mark.parametrize("to", ["ron", 7, object()])
def test_what_is_no_user_looks_at_nothing(world: World, to: Any) -> None:
    with pytest.raises(NobodyAnswers):
        assign(world.ask(), to=to, by=world.rita)


@pytest.mark.parametrize("scope", [{"role": None}, {"pool": 3}, {"flow": ["a"]}])
def test_what_limits_a_delegation_is_text(world: World, scope: dict[str, Any]) -> None:
    with pytest.raises(BadDelegation, match="is text"):
        given(world, world.rita, world.ron, **scope)
