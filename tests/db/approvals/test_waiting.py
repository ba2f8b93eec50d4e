"""How long people are waited for: by audience, by person, by workflow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import flows
from approvals.api import BadPeriod, backlog, delegate, lives, waiting
from flows.core.misuse import UnknownWorkflow
from flows.services.clock import now
from tests.support.approving import ROLE, AskYesOrNo, World
from tests.support.filling import OrderParts, fill
from tests.support.laddering import MANAGERS, POOL, PublishPersonally, ask_long, somebody

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F5", "Q1")]

HOUR = 3600.0


def of(kind: str, name: str, **period: Any) -> Any:
    """What was found of an audience; None: nothing."""
    return next((one for one in waiting(**period).audiences if (one.kind, one.name) == (kind, name)), None)


def shown(one: Any) -> tuple[int, int, int, int]:
    return (one.asked, one.answered, one.lapsed, one.open)


def near(seconds: float | None, hours: float) -> bool:
    return seconds is not None and abs(seconds - hours * HOUR) < 60


def test_nobody_is_waited_for(world: World) -> None:
    found = waiting()
    assert (found.audiences, found.people, found.flows, backlog()) == ([], [], [], [])


def test_asked_answered_and_open(world: World) -> None:
    quick, slow, open_one = world.ask(), world.ask(), world.ask()
    world.clock.move(hours=1)
    world.decide(quick)
    world.clock.move(hours=3)
    world.decide(slow, "deny", comment="No.", by=world.ron)
    found = of("role", ROLE)
    assert shown(found) == (3, 2, 0, 1)
    assert near(found.p50, 2.5)
    assert near(found.p95, 3.85)
    assert near(found.longest, 4)
    assert (found.oldest, found.oldest_at) == (open_one.pk, open_one.asked_at)


def test_each_step_has_a_clock_of_its_own(world: World) -> None:
    """Two editors, then a lawyer: the lawyer is asked when the second editor has approved."""
    request = ask_long(world)
    lena = somebody("another lawyer", pool=POOL)
    world.clock.move(hours=2)
    world.decide(request)
    world.clock.move(hours=1)
    assert (shown(of("role", ROLE)), of("pool", POOL)) == ((1, 0, 0, 1), None)
    world.decide(request, by=world.ron)
    world.clock.move(hours=4)
    assert (shown(of("role", ROLE)), shown(of("pool", POOL))) == ((1, 1, 0, 0), (1, 0, 0, 1))
    world.decide(request, by=lena)
    editors, lawyers = of("role", ROLE), of("pool", POOL)
    assert near(editors.longest, 3)
    assert near(lawyers.longest, 4)
    assert shown(lawyers) == (1, 1, 0, 0)


def test_a_no_ends_the_step_that_was_asked(world: World) -> None:
    request = ask_long(world)
    world.clock.move(hours=2)
    world.decide(request)
    world.decide(request, "deny", comment="No.", by=world.ron)
    assert (shown(of("role", ROLE)), of("pool", POOL)) == ((1, 1, 0, 0), None)


def test_those_it_was_escalated_to_are_asked_from_then_on(world: World) -> None:
    request, chief = ask_long(world), somebody("chief", role=MANAGERS)
    world.clock.move(hours=9)
    world.worker.tick()
    world.clock.move(hours=1)
    managers = of("role", MANAGERS)
    assert shown(managers) == (1, 0, 0, 1)
    assert managers.oldest_at - request.asked_at == timedelta(hours=8)
    assert {(one.kind, one.name): one.open for one in backlog()} == {("role", ROLE): 1, ("role", MANAGERS): 1}
    world.decide(request, by=chief)
    world.decide(request, by=world.rita)
    managers = of("role", MANAGERS)
    assert near(managers.longest, 2)
    assert near(of("role", ROLE).longest, 10)
    assert (managers.answered, managers.open) == (1, 1), "the next step is open to them, too"


def test_what_ends_without_an_answer_is_no_waiting_time(world: World) -> None:
    cancelled, expired = world.ask(), world.ask(flow=AskYesOrNo)
    flows.cancel(cancelled.workflow, reason="No longer wanted", by=world.robin)
    world.clock.move(days=7, seconds=1)
    world.worker.tick()
    world.worker.run()
    assert (world.status(cancelled), world.status(expired)) == ("cancelled", "expired")
    found = of("role", ROLE, since=now("default") - timedelta(days=8))
    assert (shown(found), found.p50, found.oldest) == ((2, 0, 2, 0), None, None)


def test_a_period_is_about_what_happened_in_it(world: World) -> None:
    early, late = world.ask(), world.ask()
    world.clock.move(hours=1)
    world.decide(early)
    world.clock.move(hours=1)
    middle = now("default")
    world.clock.move(hours=1)
    world.decide(late)
    world.worker.run()
    begin = early.asked_at
    assert shown(of("role", ROLE, since=begin, until=middle)) == (2, 1, 0, 0)
    assert shown(of("role", ROLE, since=middle)) == (0, 1, 0, 0)
    assert near(of("role", ROLE, since=middle).p50, 3)
    assert [one.answered for one in waiting(since=middle).people] == [1]
    assert of("role", ROLE, since=begin - timedelta(days=2), until=begin - timedelta(days=1)) is None


def test_a_person_who_is_asked_by_name(world: World) -> None:
    request = world.ask(flow=PublishPersonally, input={"author": "rita"})
    world.clock.move(hours=2)
    assert shown(of("user", "rita")) == (1, 0, 0, 1)
    world.decide(request)
    assert shown(of("user", "rita")) == (1, 1, 0, 0)
    assert near(of("user", "rita").p95, 2)


def test_people_who_answer(world: World) -> None:
    first, second, third = world.ask(), world.ask(), ask_long(world)
    dora = somebody("dora")
    delegate(world.ron, dora, until=now("default") + timedelta(days=1), reason="x", by=world.sue)
    world.clock.move(hours=1)
    world.decide(first)
    world.decide(first, by=world.ron)  # too late: no answer
    world.decide(third, by=world.rita)
    world.clock.move(hours=2)
    world.decide(second, "deny", comment="No.", by=world.rita)
    world.decide(third, by=dora)
    rita, other = waiting().people
    assert (rita.name, rita.answered, rita.approved, rita.for_others) == ("rita", 3, 2, 0)
    assert near(rita.p50, 1)
    assert near(rita.longest, 3)
    assert (other.user, other.name, other.answered, other.for_others) == (dora.pk, "dora", 1, 1)
    world.rita.delete()
    assert {(one.user, one.name) for one in waiting().people} == {(None, "rita"), (dora.pk, "dora")}


def test_the_life_of_a_workflow(world: World) -> None:
    """Four hours of it waited for people; that is not work, and what works waits for nobody."""
    request = world.ask()
    world.clock.move(hours=4)
    world.decide(request)
    world.worker.run()
    (life,) = lives([request.workflow_id])
    assert (life.workflow, life.flow) == (request.workflow_id, "publish-news")
    assert near(life.human, 4)
    assert 0 < life.work < 60
    assert life.human + life.work <= life.life + 1
    world.clock.move(hours=1)
    assert lives([request.workflow])[0].life == life.life, "it has ended"
    (summed,) = waiting().flows
    assert (summed.flow, summed.workflows, summed.human) == ("publish-news", 1, life.human)


def test_an_open_question_counts_until_now(world: World) -> None:
    request = world.ask()
    world.clock.move(hours=4)
    (life,) = lives([request.workflow_id])
    assert near(life.human, 4)
    assert near(life.life, 4)


@pytest.mark.req("C6")
def test_forms_and_parts_are_waited_for_as_approvals_are(world: World) -> None:
    request = world.ask(flow=OrderParts)
    world.clock.move(hours=2)
    assert (shown(of("role", ROLE)), backlog()[0].open) == ((1, 0, 0, 1), 1)
    assert fill(world, request)
    world.worker.run()
    found = of("role", ROLE)
    assert shown(found) == (1, 1, 0, 0)
    assert near(found.p50, 2)
    assert [(one.name, one.answered, one.approved) for one in waiting().people] == [("rita", 1, 0)]
    assert near(lives([request.workflow_id])[0].human, 2)


def test_the_backlog(world: World) -> None:
    world.ask()
    second = world.ask(flow=PublishPersonally, input={"author": "rita"})
    world.clock.move(hours=23, minutes=30)
    third = world.ask(flow=AskYesOrNo)
    found = {(one.kind, one.name): (one.open, one.soon) for one in backlog()}
    assert found == {("role", ROLE): (2, 1), ("user", "rita"): (1, 1)}
    assert {one.soon for one in backlog(soon=timedelta(minutes=1))} == {0}
    world.decide(second)
    world.decide(third)
    assert [(one.name, one.open) for one in backlog()] == [(ROLE, 1)]


def test_a_period_that_cannot_be(world: World) -> None:
    moment = now("default")
    with pytest.raises(BadPeriod, match="before it begins"):
        waiting(since=moment, until=moment)
    for options in ({"since": moment.replace(tzinfo=None)}, {"until": moment.replace(tzinfo=None)}):
        with pytest.raises(BadPeriod, match="time zone"):
            waiting(**options)
    with pytest.raises(BadPeriod, match="at most 1,000"):
        lives([world.ask().workflow_id] * 1001)
    with pytest.raises(UnknownWorkflow):
        lives(["nonsense"])
