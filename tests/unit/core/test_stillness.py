"""Why a run is not moving: for each state of the facts the reason that matters, and a way out of each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from flows.core.protocol import CAPACITY, OUTCOMES, SUSPENDING, TERMINAL, WAIT_KINDS, Status
from flows.core.stillness import CLOCK_STOPPED, MOST_AHEAD, Facts, Hold, Trying, Waiting, Why, in_words, why

pytestmark = pytest.mark.req("Q3")

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
READY = Facts("runnable", "plan", NOW, NOW - timedelta(minutes=5), queue="agents")
RUNNING = replace(READY, status="running", trying=Trying(2, "w1", True, NOW - timedelta(seconds=90), NOW + timedelta(minutes=8)))


def waits(kind: str = "event", **more: object) -> Facts:
    one = Waiting(kind, "the build", WAIT_KINDS[kind].ends, NOW - timedelta(hours=3))
    return replace(READY, status="waiting", outcome="WAITING", waits=(replace(one, **more),))  # type: ignore[arg-type]


SILENT = CLOCK_STOPPED + timedelta(seconds=1)
PAST = NOW - timedelta(seconds=30)
CASES = {
    "queued": (READY, [Why.QUEUED]),
    "unoffered": (replace(READY, unoffered=True, needed="start one"), [Why.UNOFFERED]),
    "nobody ticks": (replace(READY, unticked=SILENT), [Why.CLOCK_STOPPED]),
    "nobody ever ticked": (replace(READY, unticked=None), [Why.CLOCK_STOPPED]),
    "a look just in time": (replace(READY, unticked=CLOCK_STOPPED), [Why.QUEUED]),
    "held": (replace(READY, holds=(Hold("flow t", "an incident"),)), [Why.HELD, Why.QUEUED]),
    "paused": (replace(READY, status="paused", outcome="WAITING", needed="resume it"), [Why.PAUSED]),
    "held and paused": (replace(READY, status="paused", holds=(Hold("all", ""),)), [Why.HELD, Why.PAUSED]),
    "computing": (RUNNING, [Why.COMPUTING]),
    "deciding": (replace(RUNNING, trying=None), [Why.COMPUTING]),
    "pausing": (replace(RUNNING, pausing=True), [Why.PAUSING, Why.COMPUTING]),
    "its worker is gone": (replace(RUNNING, trying=replace(RUNNING.trying, alive=False, until=PAST)), [Why.OWNERLESS]),  # type: ignore[type-var]
    "over its time": (replace(RUNNING, trying=replace(RUNNING.trying, until=PAST)), [Why.OVERDUE]),  # type: ignore[type-var]
    "an event": (waits(), [Why.WAITING]),
    "it has come": (waits(answered=True, ends="what lets the run go on"), [Why.ANSWERED]),
    "overdue, and nobody ticks": (replace(waits(deadline=PAST), unticked=SILENT), [Why.CLOCK_STOPPED]),
    "overdue, as the clock goes": (waits(deadline=PAST), [Why.WAITING]),
    "room": (waits("resource"), [Why.CAPACITY]),
    "nothing will wake it": (replace(waits(), waits=()), [Why.UNWOKEN]),
    "stopped": (replace(waits("human"), outcome="HUMAN_REQUIRED", error_code="BUDGET_EXHAUSTED", needed="allow more"), [Why.STOPPED]),
    "asked about": (replace(READY, status="reconciling", owes=True), [Why.SERVICED]),
    "owes, and nobody serves": (replace(READY, status="cancelling", owes=True, unoffered=True, needed="start one"), [Why.UNSERVICED]),
    "owes, and a person says": (replace(READY, status="cancelling", owes=True, needed="say what became of it"), [Why.STOPPED]),
    "doubt while it waits": (replace(waits("reconciliation"), owes=True, needed="say it"), [Why.STOPPED]),
    "a hold stops no servicing": (replace(READY, status="cancelling", owes=True, holds=(Hold("all", ""),)), [Why.SERVICED]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_reason(name: str) -> None:
    facts, expected = CASES[name]
    found = why(facts)
    assert [one.code for one in found] == expected
    assert all(one.says and one.out for one in found), "each with its way out"


def test_every_reason_has_a_case() -> None:
    assert {code for _facts, codes in CASES.values() for code in codes} == set(Why)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_of_what_has_ended_there_is_none(status: str) -> None:
    assert why(replace(READY, status=status, unoffered=True, holds=(Hold("all", ""),))) == ()


@pytest.mark.parametrize("status", sorted(frozenset(Status) - TERMINAL))
def test_every_live_status_has_a_reason(status: Status) -> None:
    for outcome in OUTCOMES[status]:
        assert why(replace(READY, status=status, outcome=outcome or "", owes=status in (Status.RECONCILING, Status.CANCELLING)))


@pytest.mark.parametrize("kind", sorted(WAIT_KINDS.keys() - SUSPENDING))
def test_every_kind_of_wait_says_who_ends_it(kind: str) -> None:
    (found,) = why(waits(kind))
    assert found.code is (Why.CAPACITY if kind in CAPACITY else Why.WAITING)
    assert "for 3 h" in found.says
    assert found.out == WAIT_KINDS[kind].ends


def test_how_many_come_before_it() -> None:
    says = {ahead: why(replace(READY, ahead=ahead))[0].says.rpartition("; ")[2] for ahead in (0, 1, 7, MOST_AHEAD)}
    assert says == {
        0: "it is the next",
        1: "1 is taken before it",
        7: "7 are taken before it",
        1000: "1000 or more are taken before it",
    }


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0.0 s"), (0.44, "0.4 s"), (59, "59 s"), (65, "1 min 5 s"), (3605, "1 h"), (93784, "1 d 2 h"), (864000, "10 d")],
)
def test_a_duration_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
