"""From a delivery to a name: a path (`body.repository.full_name`, `header.x-github-event`), or a text with paths in braces."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.core.hooks.schemes import InvalidSource

_PATH = re.compile(r"body(?:\.[^\s{}.]+){0,20}|header\.[A-Za-z0-9-]{1,100}")
_BRACES = re.compile(r"\{([^{}]*)\}")
_HOLE = object()


@dataclass(frozen=True, slots=True)
class Path:
    """Where a value stands. A number is the place in a list, from 0; a member whose name has a dot in it is for a function."""

    root: str
    steps: tuple[str, ...]

    def of(self, headers: Mapping[str, str], body: Any) -> Any:
        """The value there; None where nothing is."""
        if self.root == "header":
            return headers.get(self.steps[0])
        found = body
        for step in self.steps:
            found = _inside(found, step)
        return None if found is _HOLE else found


def _inside(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step, _HOLE)
    if isinstance(value, Sequence) and not isinstance(value, str) and step.isascii() and step.isdecimal() and len(step) < 7:
        return value[int(step)] if int(step) < len(value) else _HOLE
    return _HOLE


@dataclass(frozen=True, slots=True)
class Text:
    """Pieces of text and paths, one after the other."""

    pieces: tuple[str | Path, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths in it."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Path))

    def of(self, headers: Mapping[str, str], body: Any) -> str | None:
        """The text; None where one of its paths leads to no text and no whole number."""
        found = [piece if isinstance(piece, str) else _as_text(piece.of(headers, body)) for piece in self.pieces]
        return "".join(found) if None not in found else None  # type: ignore[arg-type]


def _as_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**40 else None


def is_path(text: str) -> bool:
    """Whether this is a path, and no other text."""
    return text == "body" or text.startswith(("body.", "header."))


def path(text: str) -> Path:
    """A path as it is written.

    Raises:
        InvalidSource: it is none.
    """
    if not _PATH.fullmatch(text):
        raise InvalidSource(
            "mapping", f"{text!r:.120} is no path: write body.name.name, body.list.0 or header.name, with names without dots"
        )
    root, *steps = text.split(".")
    return Path(root, tuple(step.lower() for step in steps) if root == "header" else tuple(steps))


def text(written: str) -> Text:
    """A path, or a text with paths in braces.

    Raises:
        InvalidSource: what stands in braces is no path.
    """
    if is_path(written):
        return Text((path(written),))
    pieces = _BRACES.split(written)  # text, path, text, path, … text
    rest = "".join(pieces[::2])
    if "{" in rest or "}" in rest:
        raise InvalidSource("mapping", f"{written!r:.120} has a brace without its other one")
    return Text(tuple(path(piece) if number % 2 else piece for number, piece in enumerate(pieces) if piece or number % 2))
