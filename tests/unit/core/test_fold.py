"""Rebuilding a workflow from its log: a sound log gives the row, and every kind of broken log is named."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core.fold import FIELDS, Difference, compare, fold

pytestmark = pytest.mark.req("A4")

STEPS = [
    ("", "runnable", "", "first", ""),
    ("runnable", "running", "first", "first", ""),
    ("running", "waiting", "first", "ask", "WAITING"),
    ("waiting", "runnable", "ask", "ask", ""),
    ("runnable", "running", "ask", "ask", ""),
    ("running", "complete", "ask", "done", "COMPLETE"),
]


def log(*changes: tuple[int, str, Any]) -> list[dict[str, Any]]:
    """The rows of STEPS, with some cells changed: (seq, column, value)."""
    rows = [
        {
            "seq": seq, "from_status": source, "to_status": target, "from_node": left, "to_node": entered,
            "outcome": outcome, "epoch": 0, "intent_version": 1, "policy_version": "",
        }
        for seq, (source, target, left, entered, outcome) in enumerate(STEPS, 1)
    ]  # fmt: skip
    for seq, column, value in changes:
        rows[seq - 1][column] = value
    return rows


ROW = {
    "version": 6, "status": "complete", "node": "done", "outcome": "COMPLETE", "epoch": 0, "intent_version": 1, "policy_version": "",
}  # fmt: skip


def test_a_sound_log_rebuilds_its_row() -> None:
    state, faults = fold(log())
    assert state == ROW
    assert faults == []
    assert compare(log(), ROW) == []
    assert set(state) == set(FIELDS)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("version", 7), ("status", "failed"), ("node", "ask"), ("outcome", "FAILED"), ("epoch", 1), ("intent_version", 2),
        ("policy_version", "p2"),
    ],
)  # fmt: skip
def test_a_row_that_says_otherwise_is_named_with_both_values(column: str, value: Any) -> None:
    assert compare(log(), {**ROW, column: value}) == [Difference(column, ROW[column], value)]


def test_empty_and_null_are_the_same_nothing() -> None:
    assert compare(log((6, "policy_version", None)), ROW) == []


def test_a_missing_row_is_a_hole_in_the_numbers_and_in_the_chain() -> None:
    rows = log()
    del rows[2]
    fields = [one.field for one in compare(rows, ROW)]
    assert fields == ["seq after 2", "from_status of 4", "from_node of 4"]


def test_a_log_without_its_end_differs_from_the_row() -> None:
    assert {one.field for one in compare(log()[:-1], ROW)} == {"version", "status", "node", "outcome"}


def test_a_log_without_its_start_is_not_sound() -> None:
    rows = log()[1:]
    for seq, row in enumerate(rows, 1):
        row["seq"] = seq
    assert compare(rows, {**ROW, "version": 5}) == [Difference("from_status of 1", "runnable", "")]


def test_a_repeated_row_is_named() -> None:
    rows = log()
    rows.insert(1, dict(rows[1]))
    assert {one.field for one in fold(rows)[1]} == {"seq after 2", "from_status of 2"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ((2, "to_status", "complete"), "move of 2"),
        ((4, "from_status", "running"), "from_status of 4"),
        ((4, "from_node", "first"), "from_node of 4"),
        ((1, "to_status", "waiting"), "move of 1"),
        ((6, "to_status", "runnable"), "status"),
        ((5, "epoch", -1), "epoch of 5"),
        ((3, "seq", 9), "seq after 2"),
        ((3, "to_status", "bogus"), "move of 3"),
        ((3, "from_status", "bogus"), "move of 3"),
        ((4, "from_status", ""), "from_status of 4"),
    ],
)
def test_each_kind_of_broken_row_is_named(change: tuple[int, str, Any], fault: str) -> None:
    assert fault in {one.field for one in compare(log(change), ROW)}


def test_nothing_moves_out_of_an_end() -> None:
    rows = [*log(), {**log()[5], "seq": 7, "from_status": "complete", "to_status": "runnable", "from_node": "done"}]
    assert Difference("move of 7", "complete → runnable", "illegal") in fold(rows)[1]


def test_the_epoch_may_grow_and_never_shrinks() -> None:
    assert fold(log((4, "epoch", 1), (5, "epoch", 1), (6, "epoch", 2)))[1] == []
    assert [one.field for one in fold(log((3, "epoch", 1)))[1]] == ["epoch of 4"]


def test_a_row_without_a_log_is_named() -> None:
    assert compare([], ROW) == [Difference("log", "empty", "row exists")]
