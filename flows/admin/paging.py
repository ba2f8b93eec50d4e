"""Sections of a page that are long: each is shown a page at a time, by a number in the address that is its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

SIZE = 50
#: Nobody turns further, and the database counts off what is before.
MOST = 1000


class Pages:
    """What of each section is shown. `asked`: the query of the address."""

    def __init__(self, asked: Mapping[str, str]) -> None:
        self._asked = asked

    def number(self, name: str) -> int:
        """Which page of a section; the first for whatever is no number of one."""
        text = self._asked.get(name, "")
        return min(max(int(text), 1), MOST) if text.isascii() and text.isdecimal() and len(text) < 6 else 1

    def part(self, name: str, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of that page, and one more that says whether there are others."""
        first = (self.number(name) - 1) * SIZE
        return rows[first : first + SIZE + 1]

    def shown(self, found: Sequence[Any]) -> list[Any]:
        """Of what `part` brought, what is shown."""
        return list(found[:SIZE])

    def links(self, name: str, found: Sequence[Any]) -> dict[str, Any]:
        """What the template prints below a section; `found`: what `part` brought."""
        number = self.number(name)
        return {"name": name, "newer": number - 1, "older": number + 1 if len(found) > SIZE else 0, "number": number}
