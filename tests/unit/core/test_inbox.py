"""Where an event stands that no wait took: the table of decision 0006, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from flows import About
from flows.core.inbox import BY_CHANNEL, OPEN, Facts, Named, Place, Run, place_of

RUN = uuid4()
LIVE, DONE, GONE = Run("waiting", "WAITING"), Run("complete", "COMPLETE"), Run("superseded", "SUPERSEDED")
CONTINUED = Run("complete", "CONTINUED")
NAMED = Named(LIVE, epoch=2, intent=3, waited=True)


@pytest.mark.parametrize(
    ("facts", "place"),
    [
        (Facts(), Place.EARLY),
        (Facts(type_known=False), Place.UNKNOWN),
        (Facts(last=LIVE), Place.BETWEEN),
        (Facts(last=DONE, waiting=True), Place.BETWEEN),
        (Facts(last=LIVE, type_known=False), Place.BETWEEN),
        (Facts(last=CONTINUED), Place.BETWEEN),
        (Facts(last=DONE), Place.ENDED),
        (Facts(last=GONE), Place.SUPERSEDED),
        (Facts(last=replace(DONE, superseded=True)), Place.SUPERSEDED),
    ],
)
def test_what_says_nothing_is_placed_by_its_channel(facts: Facts, place: Place) -> None:
    assert place_of(About(), facts) is place


@pytest.mark.parametrize(
    ("about", "named", "more", "place"),
    [
        ({}, None, {}, Place.MISDIRECTED),
        ({}, NAMED, {}, Place.BETWEEN),
        ({}, replace(NAMED, waited=False), {}, Place.EARLY),
        ({}, replace(NAMED, waited=False, may_wait=False), {}, Place.MISDIRECTED),
        ({}, replace(NAMED, waited=False, run=DONE), {}, Place.MISDIRECTED),
        ({}, replace(NAMED, run=DONE), {}, Place.ENDED),
        ({}, replace(NAMED, run=DONE), {"waiting": True}, Place.EARLIER_RUN),
        ({}, replace(NAMED, run=DONE), {"last": LIVE}, Place.EARLIER_RUN),
        ({}, replace(NAMED, run=DONE), {"last": DONE}, Place.ENDED),
        ({}, replace(NAMED, run=GONE), {"waiting": True}, Place.SUPERSEDED),
        ({}, replace(NAMED, run=CONTINUED), {}, Place.BETWEEN),
        ({"epoch": 2, "intent": 3}, NAMED, {}, Place.BETWEEN),
        ({"epoch": 1}, NAMED, {}, Place.EARLIER_EPOCH),
        ({"epoch": 3}, NAMED, {}, Place.MISDIRECTED),
        ({"intent": 2}, NAMED, {}, Place.SUPERSEDED),
        ({"intent": 4}, NAMED, {}, Place.MISDIRECTED),
        ({"wait": 7}, replace(NAMED, wait_known=True, wait_open=False), {}, Place.EARLIER_WAIT),
        ({"wait": 7}, replace(NAMED, wait_known=True, wait_open=True), {}, Place.BETWEEN),
        ({"wait": 7}, replace(NAMED, wait_known=False, wait_open=True), {}, Place.MISDIRECTED),
    ],
)
def test_what_says_what_it_is_about_is_placed_by_that(
    about: dict[str, Any], named: Named | None, more: dict[str, Any], place: Place
) -> None:
    assert place_of(About(workflow=RUN, **about), Facts(named=named, **more)) is place


def test_what_a_wait_may_take_and_what_only_an_older_run_may_are_apart() -> None:
    assert not OPEN & BY_CHANNEL
