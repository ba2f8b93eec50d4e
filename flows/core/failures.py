"""What a recorded failure was: from its code and the name of its class back to what the engine decided on, where that can be known.

The record of an attempt holds the code and the first class. For the errors of this package and of Python the rest follows from these two.
For an author's own class it does not: then `unlisted` gives what the arrow notes beside them.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from functools import cache
from typing import Any

from flows.core import errors, turn_errors
from flows.core.errors import UNCLASSIFIED, ActivityError, DefinitionError, Failure, PayloadError, Route

#: Names of classes that a note keeps at most; nobody's hierarchy is deeper.
MOST_CLASSES = 40


def recalled(code: str, class_name: str | None) -> Failure:
    """The failure that this code and class stand for, as far as the taxonomy tells."""
    known = _listed().get(class_name or "")
    if known is not None and known.code == code:
        return known
    return Failure(code, _routes().get(code, Route.RETRY), (class_name,) if class_name else ())


def unlisted(failure: Failure) -> dict[str, Any] | None:
    """What must be recorded beside code and class so that the failure can be recalled; None: nothing."""
    found = recalled(failure.code, failure.classes[0] if failure.classes else None)
    if (found.route, found.classes) == (failure.route, failure.classes):
        return None
    return {"route": failure.route.value, "classes": list(failure.classes[:MOST_CLASSES])}


def recorded(code: str | None, class_name: str | None, noted: Mapping[str, Any] | None) -> Failure:
    """The failure behind an attempt: as its arrow noted it, else as it is recalled."""
    if noted is None:
        return recalled(code or UNCLASSIFIED, class_name)
    return Failure(code or UNCLASSIFIED, Route(noted["route"]), tuple(noted["classes"]))


@cache
def _listed() -> dict[str, Failure]:
    """Every exception of this package and of Python, by name, as `classify` sees it."""
    found: dict[str, Failure] = {}
    for module in (builtins, errors, turn_errors):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Exception):
                found[value.__name__] = _failure(value)
    return found


def _failure(cls: type[Exception]) -> Failure:
    classes = tuple(c.__name__ for c in cls.__mro__ if c not in (object, BaseException))
    if issubclass(cls, ActivityError):
        return Failure(cls.code, cls.route, classes)
    if issubclass(cls, PayloadError | DefinitionError):
        return Failure(cls.code, Route.HUMAN, classes)
    return Failure(UNCLASSIFIED, Route.RETRY, classes)


@cache
def _routes() -> dict[str, Route]:
    return {failure.code: failure.route for failure in _listed().values()}
