"""Senders that meet senders, and a withdrawal: nothing is sent twice, and who heard of a question hears of its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flows
from approvals.models import Notice
from flows.services import notices
from tests.support import noticing
from tests.support.approving import World, world
from tests.support.noticing import FED, FEED
from tests.support.races import all_of

__all__ = ["world"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("F5")]

ROUNDS = 12


@pytest.fixture(autouse=True)
def told(world: World, settings: Any) -> Iterator[None]:
    """One channel, in memory."""
    settings.OUTLAST = {"NOTICE_CHANNELS": {"feed": FEED, "mail": noticing.MAIL}}
    noticing.with_addresses(world)
    FED.clear()
    yield
    FED.clear()


def send() -> int:
    return notices.send_owed("default")


def test_of_three_senders_two_lose_each_notice(world: World, mailoutbox: list[Any]) -> None:
    for number in range(ROUNDS):
        requests = [world.ask(key=f"{number}-{each}") for each in range(3)]
        for _ in range(2):  # once for the events, once for what they became
            assert not [one for one in all_of([send] * 3) if isinstance(one, Exception)]
        send()
        assert sorted(note.request for note in FED) == [one.pk for one in requests]
        found = [message.extra_headers["Message-ID"] for message in mailoutbox]
        assert len(found) == len(set(found)) == 6
        assert set(Notice.objects.values_list("tries", flat=True)) == {1}
        FED.clear()
        mailoutbox.clear()


def test_a_withdrawal_that_meets_a_sender_is_told_to_exactly_those_who_heard_of_the_question(
    world: World, mailoutbox: list[Any]
) -> None:
    for _ in range(ROUNDS):
        request = world.ask()
        outcomes = all_of([send, lambda request=request: flows.cancel(request.workflow)])
        assert not [one for one in outcomes if isinstance(one, Exception)]
        send()
        heard = {message.to[0] for message in mailoutbox if message.body.startswith("Your answer is needed.")}
        told = {message.to[0] for message in mailoutbox if message.body.startswith("The question was withdrawn")}
        assert heard <= told
        assert {note.kind for note in FED} in ({"asked", "withdrawn"}, set()), "in memory nothing is lost between claim and send"
        FED.clear()
        mailoutbox.clear()
