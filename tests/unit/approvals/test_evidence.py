"""A value as rows, complete; and a model's own words apart."""

from __future__ import annotations

import json
from typing import Any

from approvals.core.evidence import MAX_ROWS, Row, apart, rows


def test_every_leaf_is_a_row() -> None:
    value = {"to": "2.0", "files": ["a.py", "b.py"], "patch": "one\ntwo", "none": None, "empty": {}, "deep": {"x": [{"y": 1.5}]}}
    assert rows(value) == [
        Row("to", '"2.0"'),
        Row("files[0]", "a.py"),
        Row("files[1]", "b.py"),
        Row("patch", "one\ntwo", block=True),
        Row("none", "null"),
        Row("empty", "{}"),
        Row("deep.x[0].y", "1.5"),
    ]
    assert rows("x") == [Row("", "x")]
    assert rows("x" * 201) == [Row("", "x" * 201, block=True)]


def test_nothing_is_left_out_of_a_large_value() -> None:
    value = {str(n): n for n in range(MAX_ROWS + 1)}
    (row,) = rows(value)
    assert row.block
    assert json.loads(row.text) == value


def test_deep_values_end() -> None:
    deep: Any = "end"
    for _ in range(300):
        deep = {"a": deep}
    (row,) = rows(deep)
    assert "end" in row.text


def test_a_models_own_words_are_kept_apart() -> None:
    assert apart({"patch": "…", "summary": "Safe!", "reason": 3, "notes": "n"}) == (
        {"patch": "…", "reason": 3},
        {"summary": "Safe!", "notes": "n"},
    )
    assert apart("Trust me.") == (None, {"": "Trust me."})
    assert apart([{"reason": "x"}]) == ([{"reason": "x"}], {})
    assert apart(None) == (None, {})
