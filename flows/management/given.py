"""What a person types, or hands over in a file: text, numbers, JSON. What it cannot be is said, before anything is looked up."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from flows.core import payload, visible

WRONG_USAGE = 2

#: What the record's columns of versions hold; more rows than that nobody lists.
MAX_NUMBER = 2**31 - 1

#: Options that name files: to the system those are bytes, and may be any.
_FILES = frozenset({"file", "body", "output"})
#: Where an option is not called what a person types.
_TYPED = {"source": "from"}


def check_texts(options: Mapping[str, Any]) -> None:
    """Whether everything that was typed is text that the record could hold.

    Raises:
        CommandError: names the option or argument that is none.
    """
    for name, given in options.items():
        for text in given if isinstance(given, list | tuple) else [given]:
            if isinstance(text, str) and name not in _FILES and not payload.is_text(text):
                said = _TYPED.get(name, name).replace("_", "-")
                why = "is not text: it holds a NUL character, or bytes that are not UTF-8. Write it in UTF-8."
                raise CommandError(f"{said}: {visible.plain(text)[:200]} {why}", returncode=WRONG_USAGE)


def number(text: str) -> int | None:
    """A whole number from 1 that the record could hold; None if it is none."""
    if not text.isdecimal() or len(text) > len(str(MAX_NUMBER)):
        return None
    return found if 1 <= (found := int(text)) <= MAX_NUMBER else None


def positive(text: str) -> int:
    """The same, as argparse wants it said."""
    found = number(text)
    if found is None:
        raise ArgumentTypeError(f"{visible.plain(text)[:80]!r} is not a whole number from 1 to {MAX_NUMBER}")
    return found


def parsed(text: str, what: str) -> Any:
    """The JSON value that was typed, or with - the one on stdin.

    Raises:
        CommandError: it is none.
    """
    return _loaded(sys.stdin.read() if text == "-" else text, what)


def from_file(file: str, what: str) -> Any:
    """The JSON value in a file, or with - the one on stdin.

    Raises:
        CommandError: it cannot be read, or holds none.
    """
    if file == "-":
        return parsed(file, what)
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{what} cannot be read: {error.strerror}.", returncode=WRONG_USAGE) from error
    except ValueError as error:
        raise CommandError(f"{what} is not JSON: {error}", returncode=WRONG_USAGE) from error
    return _loaded(text, what)


def _loaded(text: str, what: str) -> Any:
    """How deep Python reads differs between its versions; the record has one measure."""
    try:
        value = json.loads(text)
        deep = payload.is_deep(value)
    except RecursionError:
        deep = True
    except ValueError as error:
        raise CommandError(f"{what} is not JSON: {error}", returncode=WRONG_USAGE) from error
    if deep:
        message = f"{what} is nested too deeply; at most {payload.MAX_DEPTH} levels are stored."
        raise CommandError(message, returncode=WRONG_USAGE)
    return value
