"""The mails about a request: what they say and what they never say, one thread, one mail for several questions."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail

from approvals.api import assign
from approvals.models import Notice, Request
from approvals.services.channels import Mail
from flows.services import notices
from tests.support import noticing
from tests.support.approving import AskYesOrNo, PublishNews, World
from tests.support.laddering import somebody
from tests.support.noticing import fates, send, who

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F5")]

SECRET = "the model's own words"


@pytest.fixture(autouse=True)
def told(world: World, settings: Any) -> World:
    """Everybody has an address."""
    settings.OUTLAST = {"ADMIN_URL": noticing.SITE, "NOTICE_FROM": "Outlast <flows@example.com>"}
    noticing.with_addresses(world)
    return world


def of(name: str) -> list[Any]:
    """The mails to somebody, oldest first."""
    return [message for message in mail.outbox if message.to == [f"{name}@example.org"]]


def test_a_mail_says_what_waits_where_and_until_when(world: World) -> None:
    request = world.ask(key="news-7", goal="Publish the news\nof today")
    who()
    (message,) = of("rita")
    assert (message.subject, message.from_email) == (
        f"publish-news news-7: ask, request {request.pk}",
        "Outlast <flows@example.com>",
    )
    assert request.expires_at is not None
    assert message.body.splitlines() == [
        "Your answer is needed.",
        "",
        "Workflow: publish-news news-7, at ask",
        "Goal: Publish the news of today",
        f"Asked: {request.asked} (step 1 of 1)",
        f"Expires: {request.expires_at:%Y-%m-%d %H:%M} UTC",
        f"{noticing.SITE}/outlast_approvals/request/{request.pk}/decide/",
        "",
        "The link only opens the page; nothing is decided by opening it.",
    ]
    assert message.body.count("http") == 1


@pytest.mark.req("F2")
def test_its_link_opens_the_page_and_decides_nothing(world: World, client: Any, settings: Any) -> None:
    settings.OUTLAST = {"ADMIN_URL": "/admin"}
    request = world.ask()
    who()
    (link,) = [line for line in of("rita")[0].body.splitlines() if line.startswith("/admin")]
    assert client.get(link).status_code == 302, "who is not logged in is asked to"
    client.force_login(world.rita)
    assert client.get(link).status_code == 200
    assert client.head(link).status_code == 200
    assert world.status(request) == "pending"


def test_without_the_admins_address_it_says_where_in_the_admin(world: World, settings: Any) -> None:
    settings.OUTLAST = {"ADMIN_URL": ""}
    request = world.ask()
    who()
    assert f"In the admin: outlast_approvals/request/{request.pk}/decide/" in of("rita")[0].body


@pytest.mark.req("E5")
def test_nothing_that_a_model_wrote_is_in_any_mail(world: World) -> None:
    """Neither the candidate nor its evidence, nor what a reviewer says about them."""
    request = world.ask({"text": SECRET}, {"text": SECRET}, input={"evidence": {"reason": SECRET}})
    who()
    boss = somebody("boss", permissions=("answer_request", "assign_request"), email="boss@example.org")
    assign(request, to=world.ron, by=boss)
    who()
    world.decide(request, "changes", comment=SECRET)
    world.worker.run()
    who()
    world.worker.run()
    import flows

    flows.cancel(request.workflow)
    who()
    kinds = set(Notice.objects.exclude(sent_at=None).exclude(channel="").values_list("kind", flat=True))
    assert kinds == {"asked", "assigned", "decided", "withdrawn"}
    assert not [message for message in mail.outbox if SECRET in str(message.message())]


@pytest.mark.req("F7")
def test_what_hides_in_a_name_is_shown_and_no_header_can_be_added(world: World) -> None:
    world.ask(key="k\u202e\nBcc: all@example.com", goal="Good\u200b <b>news</b>\r\nX: y " + "long " * 200)
    who()
    (message,) = of("rita")
    assert message.subject.startswith("publish-news k[U+202E] Bcc: all@example.com: ask, request ")
    assert "Bcc" not in message.message()
    goal = next(line for line in message.body.splitlines() if line.startswith("Goal: "))
    assert goal.startswith("Goal: Good[U+200B] <b>news</b> X: y long long ")
    assert len(goal) < 350


def test_the_mails_about_one_request_are_one_thread(world: World) -> None:
    request, other = world.ask(), world.ask()
    send()
    world.decide(request)
    world.decide(other, "deny", comment="No.")
    send()
    root, others = (f"<outlast.request.{one.pk}@admin.example>" for one in (request, other))
    found = [message for message in mail.outbox if message.extra_headers["References"] == root]
    assert {message.to[0] for message in found} == {"rita@example.org", "ron@example.org", "robin@example.org"}
    assert len({message.subject for message in found}) == 1
    assert {message.extra_headers["In-Reply-To"] for message in mail.outbox} == {root, others}
    ids = [message.message()["Message-ID"] for message in mail.outbox]
    assert len(ids) == len(set(ids)) == 6
    assert {message.message()["Auto-Submitted"] for message in mail.outbox} == {"auto-generated"}


def test_a_mail_that_is_sent_again_has_the_same_id(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server took it, and the answer was lost."""
    request = world.ask(flow=AskYesOrNo)
    sent, deliver = [], Mail.send

    def lost(self: Mail, notes: Any) -> None:
        deliver(self, notes)
        sent.append(notes)
        if len(sent) == 1:
            raise ConnectionResetError

    monkeypatch.setattr(Mail, "send", lost)
    who()
    world.clock.move(seconds=4)
    who()
    ids = [message.message()["Message-ID"] for message in of("robin")]
    assert ids == [f"<outlast.notice.asked-{request.pk}-0-{world.robin.pk}@admin.example>"] * 2


def test_our_part_of_an_id_is_that_of_the_sender_without_an_address_of_the_admin(world: World, settings: Any) -> None:
    settings.OUTLAST = {"ADMIN_URL": "", "NOTICE_FROM": "Outlast <flows@example.com>"}
    world.ask()
    who()
    assert of("rita")[0].message()["Message-ID"].endswith("@example.com>")


# ---------------------------------------------------------------- digest


@pytest.fixture
def hourly(settings: Any) -> None:
    """One mail an hour."""
    settings.OUTLAST = {"ADMIN_URL": noticing.SITE, "NOTICE_DIGEST_SECONDS": 3600}


def links(message: Any) -> list[str]:
    return [line.rsplit("/", 3)[1] for line in message.body.splitlines() if line.startswith("http")]


@pytest.mark.usefixtures("hourly")
def test_what_waits_for_a_person_goes_out_in_one_mail(world: World) -> None:
    first = world.ask(key="one")
    assert who() == []
    world.clock.move(minutes=40)
    second, third = world.ask(key="two"), world.ask(key="three", flow=AskYesOrNo)
    assert who() == []
    world.decide(second, by=world.ron)
    assert who() == ["robin"], "what was decided does not wait"
    world.clock.move(minutes=21)
    assert who() == ["rita", "ron"], "with the first of them, an hour after it"
    message = of("rita")[0]
    assert message.subject == "2 questions wait for your answer"
    assert links(message) == [str(first.pk), str(third.pk)], "the one that was answered meanwhile is left out"
    assert message.body.startswith("Your answer is needed to these questions.\n\nWorkflow: publish-news one, at ask\n")
    assert message.extra_headers["References"].split() == [f"<outlast.request.{one.pk}@admin.example>" for one in (first, third)]
    world.clock.move(minutes=40)
    assert who() == ["robin"], "his hour began later"
    assert of("robin")[-1].subject.startswith("ask-yes-or-no three: ask"), "of a single one it is the mail as always"
    assert sorted(fates(user=world.rita)) == [("rita", "asked", "CLOSED"), *[("rita", "asked", "sent")] * 2]


@pytest.mark.usefixtures("hourly")
def test_nobody_is_told_only_when_it_is_too_late(world: World, declare: Any) -> None:
    """With an hour to answer, half an hour is left."""
    from flows import COMPLETE, FAILED, Approval, Deadline, Decision, End
    from tests.support import approving

    flow = declare(
        "t-urgent",
        propose=Decision(approving.propose, choices={"release": "ask"}),
        ask=Approval(
            candidate="propose", role=approving.ROLE, expires=Deadline(hours=1, then="no"), approved="done", denied="no"
        ),
        done=End(COMPLETE),
        no=End(FAILED),
    )
    world.worker.flows, world.worker.versions = [flow.definition.name, PublishNews.definition.name], [1, 1]
    world.ask(flow=PublishNews)
    who()
    world.ask(flow=flow)
    who()
    world.clock.move(minutes=29)
    assert who() == []
    world.clock.move(minutes=2)
    assert who() == ["rita", "ron"]
    assert len(of("rita")) == 1
    world.clock.move(minutes=30)
    assert who() == ["rita", "ron"]


@pytest.mark.usefixtures("hourly")
def test_a_digest_that_failed_comes_as_a_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [world.ask(), world.ask()]
    who()
    world.clock.move(hours=1, minutes=1)
    with monkeypatch.context() as broken:
        broken.setattr(Mail, "send", lambda self, notes: 1 / 0)
        assert notices.send_owed("default") == 0
    assert notices.send_owed("default") == 0
    world.clock.move(seconds=4)
    assert who() == ["rita", "ron"]
    assert links(of("rita")[0]) == [str(one.pk) for one in requests]
    assert set(Notice.objects.exclude(channel="").values_list("tries", "why")) == {(2, "")}


@pytest.mark.usefixtures("hourly")
def test_a_question_that_is_withdrawn_before_anybody_heard_of_it_is_told_to_nobody(world: World) -> None:
    import flows

    request: Request = world.ask()
    who()
    flows.cancel(request.workflow)
    world.clock.move(hours=2)
    assert who() == []
