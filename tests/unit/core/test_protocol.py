"""The tables of the protocol: complete, consistent, and the same in the database."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from flows.core import protocol
from flows.core.protocol import LIVE, MOVES, OUTCOMES, SUSPENDED, TERMINAL, WAIT_KINDS, Outcome, Status, is_legal
from flows.core.verdicts import Verdict

STATE, KNOWN, _ = import_module("flows.migrations.0009_outside").NOW
MOVED = import_module("flows.migrations.0024_erasing").NOW


def words_after(sql: str, start: str) -> set[str]:
    """The first array of text literals after `start`."""
    found = re.search(re.escape(start) + r".*?'\{(.*?)\}'::text\[\]", sql, re.DOTALL)
    assert found, f"no list after {start!r}"
    return {word for word in re.split(r"[\s,]+", found.group(1)) if word}


@pytest.mark.req("A2")
def test_the_trigger_knows_exactly_the_moves_of_the_table() -> None:
    ours = {f"{source or ''}>{target}" for source, targets in MOVES.items() for target in targets}
    assert words_after(MOVED, "IF NOT (source ||") == ours


def test_the_database_knows_exactly_the_outcomes_of_each_status() -> None:
    ours = {f"{status}:{outcome or ''}" for status, outcomes in OUTCOMES.items() for outcome in outcomes}
    assert words_after(STATE, "(status || ':' || outcome)") == ours


@pytest.mark.parametrize(
    ("noun", "words"),
    [
        ("activity", {one.value for one in protocol.ActivityStatus}),
        ("attempt", {one.value for one in protocol.AttemptOutcome}),
        ("wait", {one.value for one in protocol.WaitStatus}),
        ("wait kind", set(WAIT_KINDS)),
        ("timer kind", {one.value for one in protocol.TimerKind}),
        ("verdict", {one.value for one in Verdict}),
        ("wake cause", {one.value for one in protocol.WakeCause}),
        ("budget kind", {one.value for one in protocol.BudgetKind}),
        ("budget entry", {one.value for one in protocol.BudgetEntryKind}),
    ],
)
def test_the_database_knows_exactly_the_words_of_the_protocol(noun: str, words: set[str]) -> None:
    assert words_after(KNOWN, f"WHEN '{noun}' THEN") == words


def test_every_status_has_its_moves_and_its_outcomes() -> None:
    assert set(MOVES) == set(Status) | {None}
    assert set(OUTCOMES) == set(Status)
    assert all(OUTCOMES.values())


def test_terminal_states_are_those_without_a_way_out() -> None:
    """What has ended may only be erased, where it stands."""
    assert {status for status in Status if MOVES[status] <= {status}} == TERMINAL
    assert set(Status) == LIVE | TERMINAL
    assert not LIVE & TERMINAL


def test_every_status_is_reached_from_the_start_and_every_live_one_can_end() -> None:
    def reached(start: Status | None) -> set[Status]:
        found: set[Status] = set()
        todo = list(MOVES[start])
        while todo:
            status = todo.pop()
            if status not in found:
                found.add(status)
                todo.extend(MOVES[status])
        return found

    assert reached(None) == set(Status)
    for status in LIVE:
        assert reached(status) & TERMINAL, status


def test_every_live_status_can_be_cancelled_and_superseded() -> None:
    for status in LIVE:
        assert Status.CANCELLING in MOVES[status], status
        assert Status.SUPERSEDED in MOVES[status], status


def test_only_running_work_completes() -> None:
    before = {source for source, targets in MOVES.items() if Status.COMPLETE in targets}
    assert before == {Status.RUNNING, Status.RECONCILING, Status.COMPLETE}  # the last: it is erased


def test_suspended_outcomes_belong_to_waiting_and_paused_only() -> None:
    for outcome in SUSPENDED - {Outcome.RECONCILIATION_REQUIRED, Outcome.HUMAN_REQUIRED}:
        assert {status for status, outcomes in OUTCOMES.items() if outcome in outcomes} == {Status.WAITING, Status.PAUSED}
    asked = {status for status, outcomes in OUTCOMES.items() if Outcome.HUMAN_REQUIRED in outcomes}
    assert asked == {Status.WAITING, Status.PAUSED, Status.CANCELLING}, "cleanup, too, may need a person"


def test_no_terminal_outcome_is_shared_between_statuses() -> None:
    seen: dict[Outcome | None, Status] = {}
    for status in TERMINAL:
        for outcome in OUTCOMES[status]:
            assert outcome not in seen, outcome
            seen[outcome] = status


def test_every_outcome_belongs_to_some_status() -> None:
    assert {outcome for outcomes in OUTCOMES.values() for outcome in outcomes} == set(Outcome) | {None}


@pytest.mark.parametrize("name", sorted(WAIT_KINDS))
def test_every_wait_kind_says_who_ends_it_who_is_told_and_what_cancel_does(name: str) -> None:
    kind = WAIT_KINDS[name]
    assert kind.name == name
    assert all((kind.ends, kind.alert, kind.escalation, kind.slo, kind.on_cancel))


def test_is_legal_answers_from_the_table() -> None:
    assert is_legal(None, Status.RUNNABLE)
    assert not is_legal(None, Status.RUNNING)
    assert is_legal(Status.RUNNING, Status.RUNNING)
    assert not is_legal(Status.COMPLETE, Status.RUNNABLE)
    assert not is_legal(Status.WAITING, Status.RUNNING), "a wake-up authorises nothing: first ready, then claimed"
