"""The page about notices names every kind, every reason why one was not sent, and all that a message holds."""

from __future__ import annotations

import re
from pathlib import Path

from approvals.core.notices import Moot, NoticeKind
from approvals.services.channels.base import Note

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "notices.md").read_text()


def test_each_kind_has_its_line() -> None:
    table = PAGE.split("## Who is told of what")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [kind.value for kind in NoticeKind]


def test_each_reason_has_its_line() -> None:
    table = PAGE.split("## When somebody was not told")[1]
    assert {word for line in table.splitlines() for word in re.findall(r"`([A-Z_]+)`", line.split(" | ")[0])} >= set(Moot)


def test_what_a_note_has_is_said_where_it_is_declared() -> None:
    told = Note.__doc__ or ""
    assert [name for name in Note.__slots__ if not re.search(rf"\b{name}\b", told)] == []
