"""Who answers, by every side door: places that are used up, accounts that come and go, chains, and what one person does to crowd others out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from approvals.api import BadDelegation, delegate
from approvals.models import Delegation, Request, Review
from approvals.services import delegating, inbox
from approvals.services.packet import MAX_REVIEWS, packet
from flows.services.clock import now
from tests.db.approvals.test_standing_in import given, mine, permit
from tests.support.approving import ROLE, World
from tests.support.laddering import ask_long, somebody

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F3", "F5")]


def page(client: Any, request: Request) -> Any:
    return client.get(reverse("admin:outlast_approvals_request_decide", args=[request.pk]))


# ---------------------------------------------------------------- places


def test_of_a_place_that_answered_and_one_of_the_accountable_none_is_left(world: World, client: Any) -> None:
    """Each of the two could be used if it were not for the other rule."""
    request, dora = ask_long(world), somebody("dora", permissions=("answer_request", "view_request"))
    given(world, world.robin, dora)
    given(world, world.rita, dora)
    assert world.decide(request, by=world.rita).code == "accepted"
    assert world.decide(request, by=dora).code == "COUNTED_BEFORE"
    assert world.refusals(request) == ["COUNTED_BEFORE"]
    assert mine(dora) == []
    client.force_login(dora)
    assert page(client, request).status_code == 200
    given(world, world.ron, dora)
    assert world.decide(request, by=dora).code == "accepted", "and a third one is one"
    assert Review.objects.get(by=dora, refused="").for_user == world.ron


def test_who_stands_in_for_somebody_who_stands_in_has_no_place(world: World) -> None:
    request, dora, dan = world.ask(), somebody("dora"), somebody("dan")
    given(world, world.rita, dora)
    given(world, dora, dan)
    assert (mine(dan), world.decide(request, by=dan).code) == ([], "NOT_ASKED")
    given(world, dan, world.vera)
    permit(world.vera, "answer_request")
    assert world.decide(request, by=world.vera).code == "NOT_ASKED"


def test_two_who_stand_in_for_each_other_count_once_each(world: World) -> None:
    request = ask_long(world)
    given(world, world.rita, world.ron)
    given(world, world.ron, world.rita)
    assert world.decide(request, by=world.rita).code == "accepted"
    assert world.decide(request, "deny", by=world.rita, comment="For Ron.").code == "COUNTED_BEFORE"
    assert world.decide(request, by=world.ron).code == "accepted"
    assert {review.for_user for review in Review.objects.filter(refused="")} == {None}


def test_one_person_with_two_accounts_takes_two_places_once(world: World) -> None:
    request = ask_long(world)
    one, two = somebody("dora", email="dora@example.org"), somebody("dora2", email="Dora@example.org ")
    given(world, world.rita, one)
    given(world, world.ron, two)
    assert world.decide(request, by=one).code == "accepted"
    assert world.decide(request, by=two).code == "COUNTED_BEFORE"


def test_the_accountable_person_takes_no_place_by_another_account(world: World) -> None:
    type(world.robin).objects.filter(pk=world.robin.pk).update(email="robin@example.org")
    request, other = world.ask(), somebody("robin2", role=ROLE, email="ROBIN@example.org")
    assert world.decide(request, by=other).code == "SELF_APPROVAL"
    given(world, world.rita, other)
    assert world.decide(request, by=other).code == "SELF_APPROVAL"
    dora = somebody("dora")
    given(world, other, dora)
    assert world.decide(request, by=dora).code == "SELF_APPROVAL"
    assert world.status(request) == "pending"


@pytest.mark.parametrize("what", ["inactive", "permission", "role", "deleted", "revoked", "over"])
def test_a_place_that_goes_between_page_and_answer(world: World, what: str) -> None:
    request, dora = world.ask(), somebody("dora")
    made = given(world, world.rita, dora, until=now("default") + timedelta(hours=1))
    assert mine(dora) == [request.pk]
    match what:
        case "inactive":
            type(dora).objects.filter(pk=world.rita.pk).update(is_active=False)
        case "permission":
            world.rita.user_permissions.clear()
        case "role":
            world.rita.groups.clear()
        case "deleted":
            type(dora).objects.get(pk=world.rita.pk).delete()
        case "revoked":
            delegating.end_delegation(made, by=dora)
        case "over":
            world.clock.move(hours=1, seconds=1)
    assert (mine(dora), world.decide(request, by=dora).code) == ([], "NOT_ASKED")
    assert world.status(request) == "pending"


def test_who_leaves_the_role_between_the_steps_has_answered_and_answers_no_more(world: World) -> None:
    request = ask_long(world)
    world.decide(request, by=world.rita)
    world.rita.groups.clear()
    assert world.decide(request, "deny", by=world.rita, comment="I have changed my mind.").code == "COUNTED_BEFORE"
    assert world.decide(request, by=world.ron).code == "accepted"
    assert Request.objects.get(pk=request.pk).step == 1, "what was said stands"


# ---------------------------------------------------------------- who somebody is


def nobody_in_particular(user: Any) -> Any:
    """As a project may write it: a number from another system, which some have not."""
    return {"rita": 7, "rita2": 7, "dan": ""}.get(user.username)


def test_of_whom_nothing_is_known_is_somebody(world: World, settings: Any) -> None:
    """The function of the setting gives nothing for the accountable user: they are not nobody, and not everybody else."""
    settings.OUTLAST = {"PERSON": f"{__name__}.nobody_in_particular"}
    request = ask_long(world)
    assert world.decide(request, by=world.robin).code == "SELF_APPROVAL"
    assert world.decide(request, by=world.ron).code == "accepted"
    dan = somebody("dan", role=ROLE)
    assert world.decide(request, by=dan).code == "accepted", "and not the same as another of whom nothing is known"
    other = ask_long(world)
    assert world.decide(other, by=world.rita).code == "accepted"
    assert world.decide(other, by=somebody("rita2", role=ROLE)).code == "COUNTED_BEFORE"


def again(user: Any) -> Any:
    """The account is deleted, and made anew under the same name."""
    name = user.username
    get_user_model().objects.get(pk=user.pk).delete()
    return somebody(name, role=ROLE)


def test_an_account_that_is_made_anew_counts_no_second_time(world: World) -> None:
    request = ask_long(world)
    assert world.decide(request, by=world.rita).code == "accepted"
    rita = again(world.rita)
    assert world.decide(request, by=rita).code == "COUNTED_BEFORE"
    dora = somebody("dora")
    given(world, rita, dora)
    assert world.decide(request, by=dora).code == "COUNTED_BEFORE"
    assert Request.objects.get(pk=request.pk).given == 1


def test_nor_does_it_forget_what_it_is_accountable_for(world: World) -> None:
    request = world.ask()
    robin = again(world.robin)
    assert world.decide(request, by=robin).code == "SELF_APPROVAL"
    dora = somebody("dora")
    given(world, robin, dora)
    assert world.decide(request, by=dora).code == "SELF_APPROVAL"
    assert world.decide(request, by=world.ron).code == "accepted"


def test_nor_in_whose_name_somebody_answered(world: World) -> None:
    request, dora = ask_long(world), somebody("dora")
    given(world, world.rita, dora)
    assert world.decide(request, by=dora).code == "accepted"
    assert world.decide(request, by=again(world.rita)).code == "COUNTED_BEFORE"


# ---------------------------------------------------------------- crowding others out


def test_however_often_somebody_is_refused_what_was_taken_is_shown(world: World, client: Any) -> None:
    request = world.ask({"text": "Hello."}, {"text": "Hello again."})
    assert world.decide(request, "changes", comment="Say more.")
    for _ in range(MAX_REVIEWS + 5):
        assert world.decide(request, "deny", by=world.ron, comment="No!").code == "ANSWERED_BEFORE"
    shown = packet(request, world.ron, "default").reviews
    assert len(shown) == MAX_REVIEWS
    assert [review.comment for review in shown if not review.refused] == ["Say more."]
    assert [review.pk for review in shown] == sorted((review.pk for review in shown), reverse=True)
    world.worker.run()
    since = packet(world.request_of(world.workflow(request)), world.ron, "default").since
    assert since is not None
    assert [review.comment for review in since.reviews] == ["Say more."]


def test_nobody_is_given_more_places_than_can_be_looked_at(world: World) -> None:
    """Each place of a person is looked at with each answer, under locks, and in the inbox."""
    request, dora, until = world.ask(), somebody("dora"), now("default") + timedelta(days=2)
    permit(world.rita, "delegate_own")
    for number in range(delegating.MAX_HELD):
        delegate(world.rita, dora, until=until, reason="x", by=world.rita, flow=f"flow-{number}")
    with pytest.raises(BadDelegation, match="dora has 20 delegations that are not over"):
        delegate(world.rita, dora, until=until, reason="x", by=world.rita)
    Delegation.objects.filter(pk=Delegation.objects.latest("pk").pk).update(revoked_at=now("default"), revoked_by_label="rita")
    delegate(world.rita, dora, until=until, reason="x", by=world.rita)
    assert mine(dora) == [request.pk]
    with CaptureQueriesContext(connection) as queries:
        inbox.waiting(dora, "default")
    assert len(queries) < 20, "one who gave many is looked up once"
    assert world.decide(request, by=dora).code == "accepted"
