"""What changed between two candidates."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.core.diff import MAX_ALL_LINES, MAX_CHANGES, Change, Diff, Line, compare, text_of
from tests.support.effort import calls_of

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


def test_places_are_named() -> None:
    before = {"to": "2.0", "files": ["a", "b"], "gone": 1, "same": {"x": [1]}}
    after = {"to": "2.1", "files": ["a", "c", "d"], "same": {"x": [1]}, "new": None}
    assert compare(before, after) == Diff(
        (
            Change("to", "changed", '"2.0"', '"2.1"'),
            Change("files[1]", "changed", "b", "c"),
            Change("files[2]", "added", after="d"),
            Change("gone", "removed", before="1"),
            Change("new", "added", after="null"),
        )
    )


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (True, 1, ("true", "1")),
        ("1", 1, ('"1"', "1")),
        (None, "null", ("null", '"null"')),
        ("", None, ('""', "null")),
        ([], {}, ("[]", "{}")),
        ({"a": True}, [1], ('{"a": true}', "[1]")),
    ],
)
def test_values_that_look_alike_are_told_apart(before: Any, after: Any, shown: tuple[str, str]) -> None:
    (change,) = compare(before, after).changes
    assert (change.before, change.after) == shown


def test_a_key_cannot_pretend_to_be_a_path() -> None:
    changes = compare({}, {"target.host": "good", "target": {"host": "evil"}, "a[0]": 1}).changes
    assert [change.path for change in changes] == ['["target.host"]', "target", '["a[0]"]']


def test_long_texts_are_compared_by_line() -> None:
    before = "\n".join(f"line {n}" for n in range(40))
    after = before.replace("line 20", "line twenty\nand a half")
    (change,) = compare({"patch": before}, {"patch": after}).changes
    assert change.lines == (
        Line("@", ""),
        Line(" ", "line 17"),
        Line(" ", "line 18"),
        Line(" ", "line 19"),
        Line("-", "line 20"),
        Line("+", "line twenty"),
        Line("+", "and a half"),
        Line(" ", "line 21"),
        Line(" ", "line 22"),
        Line(" ", "line 23"),
        Line("@", ""),
    )


def test_a_text_that_only_grew_shows_what_was_before() -> None:
    (change,) = compare("a\nb", "a\nb\nc").changes
    assert change.lines == (Line(" ", "a"), Line(" ", "b"), Line("+", "c"))


def test_the_answer_is_bounded_in_size_and_effort() -> None:
    many = compare({str(n): n for n in range(5000)}, {str(n): -n - 1 for n in range(5000)})
    assert (len(many.changes), many.more) == (MAX_CHANGES, True)
    lines = [str(n % 97) for n in range(20_000)]
    (change,), calls = calls_of(lambda: compare("\n".join(lines), "\n".join(reversed(lines))).changes)
    assert change.lines == ()
    assert change.before.startswith("0\n1\n")
    assert calls < 1000
    short = [str(n % 97) for n in range(1000)]
    _, calls = calls_of(lambda: compare("\n".join(short), "\n".join(reversed(short))))
    assert calls < 500_000


def test_deep_values_are_compared_as_text() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    (change,) = compare([deep], [[deep]]).changes
    assert change.path == "[0]" * 50


@given(JSON)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert compare(value, value) == Diff(())


@given(JSON, JSON)
def test_whatever_differs_is_found(before: Any, after: Any) -> None:
    from flows.core.canonical import canonical

    assert bool(compare(before, after).changes) == (canonical(before) != canonical(after))


def test_text_is_shown_as_itself() -> None:
    assert [text_of(value) for value in ("plain", "12", 12, True, "true", "")] == ["plain", '"12"', "12", "true", '"true"', '""']


def test_many_texts_that_take_long_to_compare_are_shown_as_they_are() -> None:
    """What a model makes cannot keep the page of a reviewer busy: after so many lines a text is shown before and after, whole."""
    dice = random.Random(1)
    before, after = ({f"text {number}": "\n".join(dice.choices("ab", k=150)) for number in range(MAX_CHANGES)} for _ in range(2))
    found = compare(before, after)
    assert (len(found.changes), found.more) == (MAX_CHANGES, False)
    compared = [change for change in found.changes if change.lines]
    assert 0 < len(compared) <= MAX_ALL_LINES / 200
    assert sum(len(change.lines) for change in compared) <= MAX_ALL_LINES
    whole = [change for change in found.changes if not change.lines]
    assert all((change.before, change.after) == (before[name], after[name]) for change in whole for name in [change.path[2:-2]])
