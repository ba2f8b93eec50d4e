"""Who is told of a request: once, only while it concerns them, and of its end if they had been told of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.db import transaction

import flows
from approvals.api import assign, delegate, revoke
from approvals.models import Notice, Pool, Request
from approvals.services.notices import owing, recipients
from approvals.services.notices.outbox import RequestOutbox
from approvals.services.plane import ApprovalPlane
from flows.services import notices, outbox
from flows.services.clock import now
from flows.store import tick
from tests.support import noticing
from tests.support.approving import ROLE, AskYesOrNo, World
from tests.support.laddering import LONG, MANAGERS, POOL, PublishLongNews, ask_long, somebody
from tests.support.noticing import FEED, MAIL, fates, send, who, write_out

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("B4", "F5")]

NEEDED, NEXT = "Your answer is needed.", "The next step has begun, and your answer is needed."
REMINDER, WITHDRAWN = "A reminder: your answer is still needed.", "The question was withdrawn: no answer is needed any more."
TOO = "Nobody has answered so far, and you may answer, too."


@pytest.fixture(autouse=True)
def told(world: World, settings: Any) -> World:
    """Everybody has an address."""
    noticing.FED.clear()
    settings.OUTLAST = {"ADMIN_URL": noticing.SITE}
    noticing.with_addresses(world)
    return world


def ask(world: World, **more: Any) -> Request:
    if not get_user_model().objects.filter(username="lena").exists():
        somebody("lena", pool=POOL, email="lena@example.org")
    return ask_long(world, **more)


# ---------------------------------------------------------------- asked


def test_who_may_answer_is_told_once(world: World) -> None:
    """Neither the accountable user, nor who only looks, nor who lacks the permission."""
    request = world.ask()
    found = tick.look(2.0, 0.0, "default")
    assert found is not None
    assert found.notices, "the clock sees that something is owed"
    assert send() == [("rita", NEEDED), ("ron", NEEDED)]
    found = tick.look(2.0, 0.0, "default")
    assert found is not None
    assert not found.notices
    owing.asked(request.pk, 0, "default")
    Notice.objects.filter(channel="").update(sent_at=None, due_at=None)
    assert send() == [], "the event is written out a second time, and everybody was told"
    assert fates() == [("rita", "asked", "sent"), ("ron", "asked", "sent")]


def test_the_accountable_user_is_told_where_they_may_answer(world: World) -> None:
    world.ask(flow=AskYesOrNo)
    assert who() == ["rita", "robin", "ron"]


def test_what_is_rolled_back_is_told_to_nobody(world: World) -> None:
    request = world.ask()
    who()
    with transaction.atomic():
        world.decide(request)
        transaction.set_rollback(True)
    assert who() == []
    assert set(Notice.objects.values_list("kind", flat=True)) == {"asked"}


def test_a_person_with_two_accounts_is_told_once(world: World) -> None:
    somebody("rita2", role=ROLE, email="RITA@example.org")
    world.ask()
    assert who() == ["rita", "ron"]


def test_who_stands_in_is_told_too(world: World) -> None:
    dora = somebody("dora", permissions=("answer_request", "delegate_own"), email="dora@example.org")
    world.rita.user_permissions.add(*dora.user_permissions.all())
    delegation = {"until": now("default") + timedelta(days=2), "reason": "On leave", "by": world.rita}
    delegate(world.rita, dora, flow="another-flow", **delegation)
    world.ask()
    assert who() == ["rita", "ron"]
    delegate(world.rita, dora, role=ROLE, **delegation)
    world.ask()
    assert who() == ["dora", "rita", "ron"]


def test_the_next_step_asks_its_own_people(world: World) -> None:
    request = ask(world)
    assert who() == ["rita", "ron"]
    world.decide(request, by=world.rita)
    assert who() == [], "one of two has approved: nobody else is asked"
    Pool.objects.get(name=POOL).members.add(world.rita)
    world.decide(request, by=world.ron)
    assert send() == [("lena", NEXT)], "rita is a lawyer too, and counts already"


def test_a_step_that_has_passed_is_not_asked_any_more(world: World) -> None:
    """Nobody sent anything until the second step had begun."""
    request = ask(world)
    Pool.objects.get(name=POOL).members.add(somebody("ed", role=ROLE, email="ed@example.org"))
    world.decide(request, by=world.rita)
    world.decide(request, by=world.ron)
    assert send() == [("ed", NEXT), ("lena", NEXT)]
    first = Notice.objects.get(channel="", kind="asked", number=0)
    assert (first.sent_at, first.why) == (None, "OVERTAKEN")


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("answered", "COUNTED_BEFORE"),
        ("left the role", "NOT_ASKED"),
        ("lost the permission", "NOT_PERMITTED"),
        ("inactive", "USER_INACTIVE"),
        ("gone", "ACCOUNT_GONE"),
        ("without an address", "NO_ADDRESS"),
    ],
)
def test_who_need_not_hear_of_it_any_more_does_not(world: World, what: str, why: str) -> None:
    """Between writing it out and sending it."""
    request = ask(world)
    write_out()
    match what:
        case "answered":
            world.decide(request, by=world.rita)
        case "left the role":
            world.rita.groups.clear()
        case "lost the permission":
            world.rita.user_permissions.clear()
        case "inactive":
            type(world.rita).objects.filter(pk=world.rita.pk).update(is_active=False)
        case "gone":
            world.rita.delete()
        case "without an address":
            type(world.rita).objects.filter(pk=world.rita.pk).update(email="")
    assert who() == ["ron"]
    assert fates(user_label="rita") == [("rita", "asked", why)]


def test_what_was_answered_or_has_expired_is_asked_of_nobody(world: World) -> None:
    request, late = world.ask(), world.ask()
    write_out()
    world.decide(request, by=world.ron)
    world.clock.move(hours=25)
    assert ("rita", NEEDED) not in send()
    assert {fate for *_, fate in fates(kind="asked")} == {"CLOSED"}
    assert world.status(late) == "pending", "nobody has looked at the clock yet"


def test_so_many_at_most_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipients, "MAX_PEOPLE", 1)
    world.ask()
    assert who() == ["rita"]


# ---------------------------------------------------------------- while it is open


def test_a_reminder_goes_to_who_has_not_answered(world: World) -> None:
    request = ask(world)
    who()
    world.decide(request, by=world.rita)
    world.clock.move(hours=5)
    world.worker.tick()
    assert send() == [("ron", REMINDER)]
    world.worker.tick()
    assert who() == []


def test_an_escalation_tells_who_may_answer_too_and_who_is_accountable(world: World) -> None:
    somebody("mona", role=MANAGERS, email="mona@example.org")
    ask(world)
    who()
    world.clock.move(hours=8, minutes=1)
    world.worker.tick()
    found = dict(send())
    assert found["mona"] in (TOO, REMINDER)
    assert sorted(found) == ["mona", "rita", "robin", "ron"]
    assert fates(kind="escalated") == [("robin", "escalated", "sent"), ("mona", "escalated", "sent")]
    (of_robin,) = [message.body for message in mail.outbox if message.to == ["robin@example.org"]]
    assert of_robin.startswith(f"Nobody has answered so far, and more people may answer now: Editors or {MANAGERS}. You are told")


def test_moments_that_come_together_bring_every_step_of_the_escalation(world: World) -> None:
    """Nobody looked at the clock for half a day; the sweep gives moments in no order."""
    somebody("mona", role=MANAGERS, email="mona@example.org")
    somebody("bea", permissions=("answer_request", "revoke_request"), email="bea@example.org")
    request = ask(world)
    who()
    ApprovalPlane().due("default", [(request.wait_id, "escalation", "2"), (request.wait_id, "escalation", "1")])
    assert Request.objects.get(pk=request.pk).escalated == 2
    assert who() == ["bea", "mona", "robin", "robin", "sue"], "a superuser has the permission that the last one asks for"
    assert list(Notice.objects.filter(channel="", kind="escalated").values_list("number", flat=True)) == [1, 2]


def test_who_was_marked_by_somebody_else_is_told_each_time(world: World) -> None:
    request = world.ask()
    who()
    boss = somebody("boss", permissions=("answer_request", "assign_request"), email="boss@example.org")
    assert assign(request, to=world.rita, by=world.rita)
    assert who() == [], "she knows"
    for to in (world.ron, world.rita, world.ron):
        assert assign(request, to=to, by=boss)
    assert who() == ["ron"], "the last one; the others are overtaken"
    assert list(Notice.objects.filter(channel="", kind="assigned").values_list("number", flat=True)) == [1, 2, 3]


# ---------------------------------------------------------------- its end


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        ("approve", "It was approved: exactly what was asked about, and nothing else."),
        ("deny", "It was denied."),
        ("changes", "Changes were requested."),
    ],
)
def test_the_answer_is_told_to_who_is_accountable_and_who_approved_before(world: World, verdict: str, says: str) -> None:
    request = ask(world)
    who()
    world.decide(request, by=world.rita)
    if verdict == "approve":
        world.decide(request, by=world.ron)
        who()
        world.decide(request, by=get_user_model().objects.get(username="lena"))
        assert send() == [("rita", says), ("robin", says), ("ron", says)]
    else:
        world.decide(request, verdict, by=world.ron, comment="Because.")
        assert send() == [("rita", says), ("robin", says)]


def test_who_answers_about_their_own_work_is_not_told_what_they_did(world: World) -> None:
    request = world.ask(flow=AskYesOrNo)
    who()
    world.decide(request, by=world.robin)
    assert who() == []


def test_an_approval_that_was_taken_back_is_told(world: World) -> None:
    request = world.ask()
    world.decide(request, by=world.rita)
    who()
    assert revoke(request, reason="Too early.", by=world.rita)
    assert send() == [("robin", "The approval was taken back before it was used. If the workflow still needs one, it asks anew.")]


ENDS = [
    ("cancel", lambda run: flows.cancel(run), WITHDRAWN),
    ("supersede", lambda run: flows.supersede(run, goal="x"), WITHDRAWN),
    ("cancel the intent", lambda run: flows.cancel_intent(run), WITHDRAWN),
]


@pytest.mark.req("F1")
@pytest.mark.parametrize(("_name", "end", "says"), ENDS, ids=[name for name, *_ in ENDS])
def test_a_question_that_is_withdrawn_is_told_to_who_was_asked(world: World, _name: str, end: Any, says: str) -> None:
    request = ask(world)
    assert who() == ["rita", "ron"]
    end(request.workflow)
    assert send() == [("rita", says), ("ron", says)]
    assert who() == []


@pytest.mark.req("F1")
def test_a_question_that_has_expired_is_withdrawn(world: World) -> None:
    world.ask()
    who()
    world.clock.move(hours=25)
    world.worker.tick()
    world.worker.run()
    says = "The time to answer is over, and silence approves nothing. There is nothing to do any more."
    assert [line for name, line in send() if name != "robin"] == [says, says]


@pytest.mark.req("F1")
def test_an_approval_that_counts_no_longer_is_told(world: World) -> None:
    request = world.ask()
    who()
    world.decide(request, by=world.rita)
    who()
    flows.cancel(request.workflow)
    says = "The approval was not used and counts no longer. There is nothing to do."
    assert send() == [("rita", says), ("ron", says)]


def test_changes_and_a_new_question_withdraw_nothing(world: World) -> None:
    """The answer was told; the new candidate is a question of its own."""
    request = world.ask({"text": "Helo."}, {"text": "Hello."})
    who()
    world.decide(request, "changes", comment="A letter is missing.")
    world.worker.run()
    assert world.status(request) == "superseded"
    assert send() == [("rita", NEEDED), ("robin", "Changes were requested."), ("ron", NEEDED)]


def test_nobody_hears_of_the_end_of_what_they_never_heard_of(world: World) -> None:
    request = world.ask()
    flows.cancel(request.workflow)
    assert who() == []
    other = world.ask()
    write_out()
    flows.cancel(other.workflow)
    assert who() == []
    assert {fate for *_, fate in fates()} == {"CLOSED"}


def test_who_was_being_told_when_it_was_withdrawn_is_told_of_that(world: World) -> None:
    """Claimed before the withdrawal and sent after it."""
    request = world.ask()
    write_out()
    ours = RequestOutbox()
    assert len(ours._claim("default", 50)) == 2
    flows.cancel(request.workflow)
    assert send() == [("rita", WITHDRAWN), ("ron", WITHDRAWN)]


def test_who_lost_every_right_hears_nothing_of_the_end(world: World) -> None:
    request = world.ask()
    who()
    world.rita.user_permissions.clear()
    flows.cancel(request.workflow)
    assert who() == ["ron"]
    assert fates(kind="withdrawn", user=world.rita) == [("rita", "withdrawn", "NOT_PERMITTED")]


# ---------------------------------------------------------------- the outbox


def test_a_crash_while_sending_loses_nothing(world: World, settings: Any) -> None:
    settings.OUTLAST = {"NOTICE_CHANNELS": {"feed": {"BACKEND": "tests.support.noticing.Dying"}}}
    noticing.Dying.alive = False
    request = world.ask()
    with pytest.raises(SystemExit):
        notices.send_owed("default")
    noticing.Dying.alive = True
    assert notices.send_owed("default") == 0, "it is still the other sender's"
    world.clock.move(seconds=outbox.CLAIMED + 1)
    assert notices.send_owed("default") == 1
    assert [note.request for note in noticing.FED] == [request.pk]


def test_what_nobody_takes_is_tried_ever_later_and_given_up(world: World, settings: Any) -> None:
    settings.OUTLAST = {"NOTICE_CHANNELS": {"dead": {"BACKEND": "tests.support.noticing.Broken"}, "mail": MAIL}}
    world.ask(flow=AskYesOrNo)
    assert len(who()) == 3, "one channel that is away holds up no other"
    row = Notice.objects.get(channel="dead")
    assert (row.tries, row.why, row.sent_at, row.gave_up_at) == (1, "ConnectionRefusedError", None, None)
    pauses = []
    for _ in range(outbox.MAX_TRIES - 1):
        row.refresh_from_db()
        assert row.due_at is not None
        pauses.append(round((row.due_at - now("default")).total_seconds()))
        assert notices.send_owed("default") == 0
        world.clock.move(seconds=pauses[-1] + 1)
        if row.request.expires_at is not None and now("default") >= row.request.expires_at:
            Notice.objects.filter(pk=row.pk).update(kind="decided")  # it stays to be told
        notices.send_owed("default")
    row.refresh_from_db()
    assert pauses == [3 * 4**n for n in range(outbox.MAX_TRIES - 1)]
    assert (row.tries, row.sent_at) == (outbox.MAX_TRIES, None)
    assert row.gave_up_at is not None


def test_a_channel_gets_the_kinds_that_it_is_for(world: World, settings: Any) -> None:
    settings.OUTLAST = {"NOTICE_CHANNELS": {"feed": {**FEED, "KINDS": ["decided"]}, "mail": {**MAIL, "KINDS": ["asked"]}}}
    request = world.ask()
    assert who() == ["rita", "ron"]
    world.decide(request)
    assert who() == []
    assert [(note.kind, note.answer) for note in noticing.FED] == [("decided", "approved")]


def test_what_was_written_for_a_channel_that_is_gone_is_dropped(world: World, settings: Any) -> None:
    world.ask()
    write_out()
    settings.OUTLAST = {"NOTICE_CHANNELS": {"feed": FEED}}
    assert who() == []
    assert fates() == [("rita", "asked", "CHANNEL_GONE"), ("ron", "asked", "CHANNEL_GONE")]


def test_without_channels_nothing_is_written(world: World, settings: Any) -> None:
    settings.OUTLAST = {"NOTICE_CHANNELS": {}}
    request = world.ask(LONG, flow=PublishLongNews)
    flows.cancel(request.workflow)
    assert not Notice.objects.exists()
