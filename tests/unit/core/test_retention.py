"""The setting RETENTION: what it says, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core.misuse import BadRetention
from flows.core.retention import SPANS, Retention, faults, read

pytestmark = pytest.mark.req("A4")


def test_what_is_left_out_has_its_default() -> None:
    assert read({}) == Retention()
    found = read({"flows": {"a": None, "b": 3}, "archive": "jsonl:x/y", "spans": {"events": None}})
    assert (found.days, found.least, found.archive, found.path) == (90, 3, "jsonl", "x/y")
    assert found.spans == {**SPANS, "events": None}
    assert read({"days": None}).least is None
    assert read({"archive": "table"}).archive == "table"


@pytest.mark.parametrize(
    "given",
    [
        90,
        {"day": 1},
        {"days": 0},
        {"days": -1},
        {"days": True},
        {"days": "90"},
        {"days": float("nan")},
        {"days": float("inf")},
        {"flows": 3},
        {"flows": {1: 3}},
        {"flows": {"a": 0}},
        {"spans": {"event": 3}},
        {"spans": {"events": "x"}},
        {"archive": "csv"},
        {"archive": "jsonl:"},
        {"archive": "jsonl:/etc"},
        {"archive": "jsonl:../up"},
        {"archive": None},
        {"storage": 3},
    ],
)
def test_what_cannot_be_is_said_and_deletes_nothing(given: Any) -> None:
    (fault, *_) = list(faults(given))
    assert fault
    with pytest.raises(BadRetention, match="Nothing was deleted"):
        read(given)
