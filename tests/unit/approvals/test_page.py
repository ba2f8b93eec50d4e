"""The words of the decision page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from approvals.admin import page
from approvals.models import Request

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.req("F2", "L1")
@pytest.mark.parametrize("on_expiry", ["", "escalate", "cancel", "fail", "node:stopped", "something new"])
def test_silence_never_approves(on_expiry: str) -> None:
    said = page.silence(Request(on_expiry=on_expiry))
    assert said.startswith("Nothing is approved." if on_expiry else "The request stays open")
    assert "%" not in said
    assert ("“stopped”" in said) == (on_expiry == "node:stopped")


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (timedelta(hours=2), '<time class="oa-calm" datetime="2026-11-29T14:00:00+00:00"'),
        (timedelta(minutes=59), '<time class="oa-soon"'),
        (timedelta(0), ">expired</time>"),
        (-timedelta(days=1), ">expired</time>"),
    ],
)
def test_time_left_is_for_people_and_programs(left: timedelta, shown: str) -> None:
    assert shown in page.time_left(NOW + left, NOW)


def test_a_request_without_an_end_says_so() -> None:
    assert page.time_left(None, NOW) == "no limit"


def test_a_long_subject_is_shortened() -> None:
    assert page.shortened("x" * 60, 60) == "x" * 60
    assert page.shortened("x" * 61, 60) == "x" * 60 + "…"
