"""Several reviewers of one request at the same moment: each counts once, one of them ends it, and what is asked next fits what was counted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission

from approvals.api import Decided, assign, decide, delegate, end_delegation, revoke
from approvals.core.seats import open_to
from approvals.models import Request, Review
from flows.services.clock import now
from tests.db.approvals.test_parts import FILES, DeleteFiles
from tests.race.test_approvals import answer, together
from tests.support.approving import ROLE, World, world
from tests.support.laddering import MANAGERS, PublishLongNews, ask_long, somebody

__all__ = ["world"]

ROUNDS = 25
MANY = 200


def row(request: Request) -> Request:
    return Request.objects.get(pk=request.pk)


def counted(request: Request) -> int:
    return Review.objects.filter(request=request, refused="").count()


@pytest.mark.req("F3", "F4")
def test_two_of_two_in_the_same_millisecond_both_count_and_one_ends_it(world: World) -> None:
    for _ in range(MANY):
        request = world.ask({"text": "Short."}, flow=PublishLongNews)
        decided = together(answer(request, world.rita), answer(request, world.ron))
        assert [one.code for one in decided] == ["accepted", "accepted"]
        assert sorted(one.ends for one in decided) == [False, True]
        assert (row(request).status, row(request).given, counted(request)) == ("approved", 2, 2)
    world.worker.run()


@pytest.mark.req("F3", "F4")
def test_a_yes_and_a_no_at_once_end_as_a_no(world: World) -> None:
    seen = set()
    for _ in range(ROUNDS):
        request = ask_long(world)
        yes, no = together(answer(request, world.rita), answer(request, world.ron, "deny"))
        assert (no.code, no.ends, row(request).status) == ("accepted", True, "denied")
        assert yes.code in ("accepted", "ANSWERED_BEFORE")
        assert counted(request) == 1 + bool(yes)
        seen.add(yes.code)
    assert seen


@pytest.mark.req("F3", "F5")
def test_a_part_and_the_whole_at_once_leave_one_of_them(world: World) -> None:
    """The whole is approved, or the part is asked about; never is anything approved that was not."""
    seen = set()
    for _ in range(ROUNDS):
        request = world.ask(FILES, flow=DeleteFiles)

        def part(one: Request = request) -> Decided:
            return decide(one.pk, verdict="narrow", keep=[0], digest=one.digest, by=world.rita, comment="Only that.")

        kept, whole = together(part, answer(request, world.ron))
        assert sorted([kept.code, whole.code]) == ["ANSWERED_BEFORE", "accepted"]
        world.worker.run()
        seen.add(kept.code)
        if whole:
            assert (row(request).status, world.workflow(request).status) == ("consumed", "complete")
        else:
            newest = world.request_of(world.workflow(request))
            assert (row(request).status, newest.status, newest.candidate["value"]["files"]) == ("superseded", "pending", ["a"])
    assert seen


@pytest.mark.req("F3")
def test_one_person_with_two_accounts_counts_once(world: World) -> None:
    type(world.rita).objects.filter(pk=world.rita.pk).update(email="rita@example.org")
    other = somebody("rita2", role=ROLE, email="RITA@example.org")
    for _ in range(ROUNDS):
        request = ask_long(world)
        decided = together(answer(request, world.rita), answer(request, other))
        assert sorted(one.code for one in decided) == ["COUNTED_BEFORE", "accepted"]
        assert (row(request).given, counted(request)) == (1, 1)


@pytest.mark.req("F3", "F5")
def test_who_gave_a_place_and_who_took_it_count_once(world: World) -> None:
    dora = somebody("dora")
    world.rita.user_permissions.add(Permission.objects.get(codename="delegate_own"))
    delegate(world.rita, dora, until=now("default") + timedelta(days=300), reason="On leave", by=world.rita)
    for _ in range(ROUNDS):
        request = ask_long(world)
        decided = together(answer(request, world.rita), answer(request, dora))
        assert sorted(one.code for one in decided) == ["COUNTED_BEFORE", "accepted"]
        assert (row(request).given, counted(request)) == (1, 1)


@pytest.mark.req("F5")
def test_an_answer_meets_the_end_of_its_delegation(world: World) -> None:
    dora, seen = somebody("dora"), set()
    world.rita.user_permissions.add(Permission.objects.get(codename="delegate_own"))
    for _ in range(ROUNDS):
        request = world.ask()
        made = delegate(world.rita, dora, until=now("default") + timedelta(days=3), reason="On leave", by=world.rita)
        decided, ended = together(answer(request, dora), lambda one=made: end_delegation(one, by=world.rita))
        assert ended
        assert decided.code in ("accepted", "NOT_ASKED")
        assert counted(request) == bool(decided)
        seen.add(decided.code)
    assert seen


@pytest.mark.req("F3", "F5")
def test_taking_back_meets_the_use(world: World) -> None:
    """The gate's pass and the revoke: used up and too late, or taken back and asked anew; never both."""
    seen = set()
    for _ in range(ROUNDS):
        request = world.ask()
        world.decide(request)
        taken, _ran = together(lambda r=request: revoke(r, reason="A mistake.", by=world.rita), world.worker.run)
        world.worker.run()
        seen.add(taken.code)
        if taken:
            assert (row(request).status, row(request).used_by) == ("revoked", None)
            assert world.workflow(request).status == "waiting"
            assert world.request_of(world.workflow(request)).pk != request.pk
        else:
            assert (taken.code, row(request).status, world.workflow(request).status) == ("TOO_LATE", "consumed", "complete")
    assert seen


@pytest.mark.req("F5")
def test_an_escalation_meets_the_next_step(world: World) -> None:
    """Whoever comes first, those who are asked are the step's and, from then on, the escalation's."""
    somebody("mona", role=MANAGERS)
    for _ in range(ROUNDS):
        request = ask_long(world)
        world.decide(request, by=world.rita)
        world.clock.move(hours=8, seconds=1)
        decided, _ = together(answer(request, world.ron), world.worker.tick)
        assert decided
        world.worker.tick()  # a sweep passes over what somebody else holds
        found = row(request)
        assert (found.status, found.step, found.escalated) == ("pending", 1, 1)
        assert found.audiences == open_to(found.steps, 1, found.escalation, 1)


def test_two_claims_at_once_leave_one(world: World) -> None:
    for _ in range(ROUNDS):
        request = ask_long(world)

        def claim(user: Any, one: Request = request) -> Any:
            return lambda: assign(one, to=user, by=user)

        assert all(together(claim(world.rita), claim(world.ron)))
        assert row(request).claimed_label in ("rita", "ron")
