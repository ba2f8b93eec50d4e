"""What becomes of moments that have come, and of an occurrence while the run before it lives: the two tables, and what holds of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.core.schedules.missed import BATCH, SINGLY, Catching, judge
from flows.core.schedules.overlap import Act, decide
from flows.core.schedules.words import CODES, MOVES, Missed, OccurrenceStatus, Overlap
from flows.core.schedules.zones import Moment

pytestmark = pytest.mark.req("M1")

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def every_minute(count: int, end: datetime = NOW) -> list[Moment]:
    """The last moments until `end`, a minute apart."""
    return [Moment(end - MINUTE * (count - 1 - number)) for number in range(count)]


def how(policy: Missed, **given: Any) -> Catching:
    return Catching(policy, given.get("window"), given.get("cap", 1000), MINUTE, given.get("held_until"))


def codes(found: list[Moment], catching: Catching) -> list[str]:
    return [one.code for one in judge(found, NOW, catching)[0]]


def test_what_is_on_time_is_pending_whatever_the_policy() -> None:
    for policy in Missed:
        assert codes(every_minute(2), how(policy)) == ["", ""]


def test_of_what_was_missed_the_policy_keeps_all_the_newest_or_none() -> None:
    found = every_minute(5, NOW - 10 * MINUTE)
    assert codes(found, how(Missed.EVERY)) == [""] * 5
    assert codes(found, how(Missed.NEWEST)) == ["MISSED"] * 4 + [""]
    assert codes(found, how(Missed.SKIP)) == ["MISSED"] * 5


def test_the_newest_is_none_that_was_missed_where_a_later_one_is_on_time() -> None:
    assert codes(every_minute(4), how(Missed.NEWEST)) == ["MISSED", "MISSED", "", ""]


def test_what_is_older_than_the_window_is_left_away_and_says_so() -> None:
    found = every_minute(4, NOW - 10 * MINUTE)
    assert codes(found, how(Missed.EVERY, window=11 * MINUTE)) == ["OUTSIDE_WINDOW"] * 2 + ["", ""]
    assert codes(found, how(Missed.NEWEST, window=5 * MINUTE)) == ["OUTSIDE_WINDOW"] * 4


def test_what_came_in_a_pause_was_not_missed() -> None:
    found = every_minute(5, NOW - 10 * MINUTE)
    catching = how(Missed.EVERY, held_until=NOW - 12 * MINUTE)
    assert codes(found, catching) == ["PAUSED"] * 3 + ["", ""]


def test_a_look_makes_up_for_at_most_the_cap_and_the_next_one_goes_on() -> None:
    found = every_minute(7, NOW - 10 * MINUTE)
    planned, mark = judge(found, NOW, how(Missed.EVERY, cap=3))
    assert [one.moment for one in planned] == found[:3]
    assert mark == found[2].at
    planned, mark = judge(found[3:], NOW, how(Missed.EVERY, cap=3))
    assert [one.moment for one in planned] == found[3:6]


def test_more_than_a_look_can_take_is_recorded_one_by_one_if_it_is_young() -> None:
    found = every_minute(BATCH + 1, NOW - 10 * MINUTE)
    planned, mark = judge(found, NOW, how(Missed.NEWEST))
    assert [one.moment for one in planned] == found[:BATCH]
    assert {one.code for one in planned} == {"MISSED"}
    assert mark == found[BATCH - 1].at


def test_what_is_long_ago_and_too_much_is_one_row_that_says_for_how_long_it_stands() -> None:
    found = every_minute(BATCH + 1, NOW - 30 * SINGLY)
    planned, mark = judge(found, NOW, how(Missed.EVERY))
    assert (planned[-1].code, planned[-1].moment, planned[-1].passed_to) == ("OVER_CAP", found[BATCH], NOW - SINGLY)
    assert mark == NOW - SINGLY
    assert planned[-1].status is OccurrenceStatus.SKIPPED


def test_nothing_has_come() -> None:
    assert judge([], NOW, how(Missed.EVERY)) == ([], None)


@settings(max_examples=200)
@given(
    ages=st.lists(st.integers(0, 4000), unique=True, max_size=60),
    policy=st.sampled_from(Missed),
    window=st.none() | st.integers(1, 4000),
    cap=st.integers(1, 5),
    held=st.none() | st.integers(0, 4000),
)
def test_looks_one_after_the_other_say_of_each_moment_exactly_once_what_becomes_of_it(
    ages: list[int], policy: Missed, window: int | None, cap: int, held: int | None
) -> None:
    """However the looks are cut: each moment once, in order; on time is pending, and of what was missed what the policy keeps."""
    found = [Moment(NOW - timedelta(seconds=age)) for age in sorted(ages, reverse=True)]
    span = timedelta(seconds=window) if window is not None else None
    held_until = NOW - timedelta(seconds=held) if held is not None else None
    catching = Catching(policy, span, cap, MINUTE, held_until)
    said, left = [], found
    while left:
        planned, mark = judge(left, NOW, catching)
        assert mark is not None
        assert sum(not one.code and NOW - one.moment.at > MINUTE for one in planned) <= cap
        said += planned
        left = [one for one in left if one.at > mark]
    assert [one.moment for one in said] == found
    for one in said:
        age = NOW - one.moment.at
        if held_until is not None and one.moment.at <= held_until:
            assert one.code == "PAUSED"
        elif age <= MINUTE:
            assert one.code == ""
        elif policy is Missed.EVERY:
            assert one.code == ("OUTSIDE_WINDOW" if span is not None and age > span else "")
        elif policy is Missed.SKIP:
            assert one.code == "MISSED"
        else:
            assert (one.code == "") == (one.moment == found[-1] and not (span is not None and age > span))


@pytest.mark.parametrize(
    ("policy", "free", "runs", "full"),
    [
        (Overlap.ALLOW, Act.START, Act.START, Act.START),
        (Overlap.SKIP, Act.START, Act.SKIP, Act.SKIP),
        (Overlap.QUEUE, Act.START, Act.QUEUE, Act.FULL),
        (Overlap.CANCEL_OLD, Act.START, Act.CANCEL, Act.CANCEL),
        (Overlap.SUPERSEDE, Act.START, Act.SUPERSEDE, Act.SUPERSEDE),
    ],
)
def test_the_overlap_table(policy: Overlap, free: Act, runs: Act, full: Act) -> None:
    assert decide(policy, queued=False, runs=False, another=False) is free
    assert decide(policy, queued=False, runs=True, another=False) is runs
    assert decide(policy, queued=False, runs=True, another=True) is full
    assert decide(policy, queued=True, runs=True, another=False) is Act.WAIT
    assert decide(policy, queued=True, runs=False, another=False) is Act.START


def test_the_one_that_was_queued_first_goes_first() -> None:
    assert decide(Overlap.QUEUE, queued=False, runs=False, another=True) is Act.FULL


def test_every_status_can_be_reached_and_every_end_is_one() -> None:
    ends = {OccurrenceStatus.DONE, OccurrenceStatus.FAILED, OccurrenceStatus.CANCELLED, OccurrenceStatus.SKIPPED}
    assert {new for _, new in MOVES} == set(OccurrenceStatus)
    assert {old for old, _ in MOVES} == {"", *set(OccurrenceStatus) - ends}
    assert all(CODES.values())
