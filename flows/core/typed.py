"""The types of what an author declares, looked at when it is made: what does not fit is said there, with the way to write it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from flows.core.errors import DefinitionError

NONE = type(None)
NUMBERS = (int, float)


def kind_of(value: object) -> str:
    """The type of a value with its article, such as an int."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def must(what: str, value: Any, types: tuple[type, ...], example: str) -> None:
    """A value of one of these types; True and False are no numbers.

    Args:
        what: as it is written, "Retry(initial=…)".
    Raises:
        DefinitionError: it is of another type.
    """
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise DefinitionError(f"{what} is {value!r:.60}, which is {kind_of(value)}. Write {example}.")


def span(what: str, value: Any, example: str, *, optional: bool = False) -> None:
    """A duration: a bare number does not say of what.

    Raises:
        DefinitionError: it is none.
    """
    must(what, value, (timedelta, NONE) if optional else (timedelta,), example)


def texts(what: str, value: Any, example: str) -> tuple[str, ...]:
    """One text or several, as several.

    Raises:
        DefinitionError: something of it is no text.
    """
    found = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple | set | frozenset) else None
    if found is None or not all(isinstance(one, str) and one for one in found):
        raise DefinitionError(f"{what} is {value!r:.60}: it takes names, as text. Write {example}.")
    return found


def errors(what: str, value: Any, example: str) -> tuple[type[BaseException], ...]:
    """Several classes of errors; one by itself is taken for a slip, because the comma is easily forgotten.

    Raises:
        DefinitionError: something of it is no class of errors.
    """
    found: Iterable[Any] | None = tuple(value) if isinstance(value, list | tuple | set | frozenset) else None
    if found is None or not all(isinstance(one, type) and issubclass(one, BaseException) for one in found):
        raise DefinitionError(f"{what} is {value!r:.60}: it takes several classes of errors. Write {example}.")
    return tuple(found)
