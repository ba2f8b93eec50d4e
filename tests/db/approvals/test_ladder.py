"""Several reviewers of one request: how many, in which order, and nobody twice."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model

import flows
from approvals.models import Pool, Request, Review
from approvals.services.eligible import lacking
from flows.models import Notice, Wait
from tests.support.approving import ROLE, World
from tests.support.laddering import LONG, MANAGERS, POOL, PublishLongNews, PublishPersonally, ask_long, somebody

pytestmark = pytest.mark.django_db(transaction=True)


def now_of(request: Request) -> tuple[str, int, int]:
    return Request.objects.values_list("status", "step", "given").get(pk=request.pk)


@pytest.mark.req("F4")
def test_two_approve_and_then_a_lawyer(world: World) -> None:
    request = ask_long(world)
    assert (request.asked, Wait.objects.get(pk=request.wait_id).reason) == ("Editors", "waiting for an answer of Editors")
    first = world.decide(request, by=world.rita)
    assert (first.code, first.ends, now_of(request)) == ("accepted", False, ("pending", 0, 1))
    assert first.sentence.startswith("Your approval is counted. 1 more approval of Editors is needed")
    assert world.workflow(request).status == "waiting"
    assert Wait.objects.get(pk=request.wait_id).evidence is None, "nothing is decided, and nobody was woken"
    lena = get_user_model().objects.get(username="lena")
    assert world.decide(request, by=lena).code == "NOT_ASKED", "it is not her turn"
    second = world.decide(request, by=world.ron)
    assert (second.ends, now_of(request)) == (False, ("pending", 1, 0))
    assert second.sentence.startswith(f"Your approval is counted. 1 more approval of pool {POOL} is needed")
    assert world.decide(request, by=world.robin).code == "NOT_ASKED", "editors are through"
    third = world.decide(request, by=lena)
    assert (third.ends, now_of(request)) == (True, ("approved", 1, 1))
    world.worker.run()
    assert (world.status(request), world.workflow(request).status) == ("consumed", "complete")
    assert list(Review.objects.filter(refused="").order_by("id").values_list("by_label", "step")) == [
        ("rita", 0),
        ("ron", 0),
        ("lena", 1),
    ]
    assert LogEntry.objects.count() == 3


def test_a_step_that_does_not_apply_is_left_out(world: World) -> None:
    request = world.ask({"text": "Short."}, flow=PublishLongNews)
    assert [step["name"] for step in request.steps] == ["Editors"]
    world.decide(request, by=world.rita)
    assert world.decide(request, by=world.ron).ends


@pytest.mark.req("F3")
def test_nobody_counts_twice(world: World) -> None:
    request = ask_long(world)
    world.decide(request, by=world.rita)
    again = world.decide(request, by=world.rita)
    assert (again.code, now_of(request)) == ("already", ("pending", 0, 1))
    assert world.decide(request, "deny", by=world.rita, comment="On second thoughts.").code == "COUNTED_BEFORE"
    lawyer_too = Pool.objects.get(name=POOL)
    lawyer_too.members.add(world.ron)
    world.decide(request, by=world.ron)
    assert world.decide(request, by=world.ron, comment="As a lawyer.").code == "already"
    assert now_of(request) == ("pending", 1, 0)


@pytest.mark.req("F3")
def test_a_second_account_of_the_same_person_counts_as_that_person(world: World, settings: Any) -> None:
    for user in (world.rita, world.robin):
        type(user).objects.filter(pk=user.pk).update(email=f"{user.username}@example.org")
    other = somebody("rita2", role=ROLE, email="Rita@Example.org ")
    own = somebody("robin2", role=ROLE, email="robin@example.org")
    request = ask_long(world)
    assert world.decide(request, by=own).code == "SELF_APPROVAL"
    world.decide(request, by=world.rita)
    assert world.decide(request, by=other).code == "COUNTED_BEFORE"
    settings.OUTLAST = {"PERSON": "tests.db.approvals.test_ladder.by_account"}
    assert world.decide(request, by=other).code == "accepted"


def by_account(user: Any) -> Any:
    return user.pk


@pytest.mark.req("F4")
@pytest.mark.parametrize(("verdict", "status"), [("deny", "denied"), ("changes", "changes_requested")])
def test_one_no_ends_it(world: World, verdict: str, status: str) -> None:
    request = ask_long(world)
    world.decide(request, by=world.rita)
    said = world.decide(request, verdict, by=world.ron, comment="No.")
    assert (said.ends, world.status(request)) == (True, status)
    assert world.decide(request, by=world.rita).code == "already"
    assert world.decide(request, "deny", by=somebody("ed", role=ROLE), comment="x").code == "ANSWERED_BEFORE"


@pytest.mark.req("F5")
def test_an_empty_pool_means_nobody_and_nobody_is_asked(world: World, settings: Any) -> None:
    settings.OUTLAST = {"REFUSE_UNANSWERABLE": True}
    Pool.objects.create(name=POOL)
    run = PublishLongNews.start({"values": [LONG]}, by=world.robin)
    world.worker.run()
    row = flows.get(run)
    assert (row.status, row.outcome, row.error_code, row.node) == ("waiting", "HUMAN_REQUIRED", "NOBODY_ELIGIBLE", "ask")
    wait = Wait.objects.get(workflow=row, closed_at=None)
    assert wait.reason.startswith(f"nobody would be able to answer: step 2 asks pool {POOL}, 1 must answer, and 0 may")
    assert "outlast_approvals.answer_request" in wait.reason
    assert "there is no pool" not in wait.reason
    assert not Request.objects.exists()
    assert Notice.objects.get().code == "NOBODY_ELIGIBLE"
    somebody("lena", pool=POOL)
    flows.resume(run, by=None)
    world.worker.run()
    assert Request.objects.get().status == "pending"


@pytest.mark.req("F5")
def test_a_pool_that_nobody_made_is_said(world: World, settings: Any) -> None:
    settings.OUTLAST = {"REFUSE_UNANSWERABLE": True}
    PublishLongNews.start({"values": [LONG]}, by=world.robin)
    world.worker.run()
    assert Wait.objects.get(closed_at=None).reason.endswith(f"; there is no pool {POOL} yet")


def test_a_step_with_a_name_of_its_own_says_whom_it_asks() -> None:
    steps = [{"name": "Legal", "audience": {"pool": POOL}, "need": 1}]
    assert f"step 1 asks Legal (pool {POOL})" in lacking(steps, None, "default", self_approval=True)


@pytest.mark.req("F5")
@pytest.mark.parametrize("who", ["the accountable user", "inactive", "without the permission", "the same person"])
def test_who_could_not_answer_is_not_counted(world: World, settings: Any, who: str) -> None:
    settings.OUTLAST = {"REFUSE_UNANSWERABLE": True}
    somebody("lena", pool=POOL)
    ron = get_user_model().objects.filter(pk=world.ron.pk)
    match who:
        case "the accountable user":
            ron.delete()  # Rita and Robin are left, and Robin is accountable
        case "inactive":
            ron.update(is_active=False)
        case "without the permission":
            world.ron.user_permissions.clear()
        case _:
            get_user_model().objects.filter(pk__in=[world.rita.pk, world.ron.pk]).update(email="r@example.org")
    run = PublishLongNews.start({"values": [LONG]}, by=world.robin)
    world.worker.run()
    assert flows.get(run).error_code == "NOBODY_ELIGIBLE"


def test_people_who_are_needed_twice_are_counted_once(world: World, settings: Any) -> None:
    settings.OUTLAST = {"REFUSE_UNANSWERABLE": True}
    Pool.objects.create(name=POOL).members.add(world.rita, world.ron)
    run = PublishLongNews.start({"values": [LONG]}, by=world.robin)
    world.worker.run()
    assert flows.get(run).error_code == "NOBODY_ELIGIBLE"
    assert "needed in other steps" in Wait.objects.get(workflow_id=run.id, closed_at=None).reason


@pytest.mark.req("F5")
def test_it_is_escalated_and_nothing_is_approved_by_that(world: World) -> None:
    request = ask_long(world)
    boss = somebody("mona", role=MANAGERS)
    assert world.decide(request, by=boss).code == "NOT_ASKED"
    world.clock.move(hours=8, seconds=1)
    world.worker.tick()
    world.worker.run()
    row = Request.objects.get(pk=request.pk)
    assert (row.status, row.escalated, row.asked) == ("pending", 1, f"Editors or {MANAGERS}")
    assert world.workflow(request).wake_seq == world.workflow(request).wake_seq
    assert world.workflow(request).status == "waiting", "people are told, and no workflow is woken"
    assert world.decide(request, by=boss).code == "accepted"
    world.clock.move(hours=4)
    world.worker.tick()
    assert Request.objects.get(pk=request.pk).escalated == 2


def test_an_escalation_outlasts_its_step(world: World) -> None:
    request = ask_long(world)
    boss = somebody("mona", role=MANAGERS)
    world.clock.move(hours=8, seconds=1)
    world.worker.tick()
    world.decide(request, by=world.rita)
    world.decide(request, by=world.ron)
    assert Request.objects.get(pk=request.pk).asked == f"pool {POOL} or {MANAGERS}"
    assert world.decide(request, by=boss).ends


def test_no_moment_outlives_its_request(world: World) -> None:
    from flows.models import Timer

    request = ask_long(world)
    kinds = set(Timer.objects.filter(wait_id=request.wait_id).values_list("kind", flat=True))
    assert kinds == {"reminder", "escalation", "wait_deadline"}
    world.decide(request, "deny", comment="No.")
    world.worker.run()
    assert not Timer.objects.filter(wait_id=request.wait_id).exists()


@pytest.mark.req("F5")
def test_one_person_is_asked_by_name(world: World) -> None:
    request = world.ask(flow=PublishPersonally, input={"author": "vera"})
    world.vera.user_permissions.add(*world.rita.user_permissions.filter(codename="answer_request"))
    assert (request.asked, request.bulk) == ("vera", True)
    assert world.decide(request, by=world.rita).code == "NOT_ASKED"
    assert world.decide(request, by=world.vera).ends


@pytest.mark.req("F1")
def test_replay_judges_a_ladder_and_a_refusal_to_ask(world: World, settings: Any) -> None:
    from flows.services.replay import replay

    request = ask_long(world)
    for name in ("rita", "ron", "lena"):
        world.decide(request, by=get_user_model().objects.get(username=name))
    settings.OUTLAST = {"REFUSE_UNANSWERABLE": True}
    Pool.objects.get(name=POOL).members.clear()
    refused = PublishLongNews.start({"values": [LONG]}, by=world.robin)
    world.worker.run()
    assert flows.get(refused).error_code == "NOBODY_ELIGIBLE"
    for one in replay([request.workflow_id, refused.id]):
        assert one.drift is None, one.drift
