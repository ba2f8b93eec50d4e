"""Hints: after commit, best effort, tell workers that work may be there. A lost hint costs a second, never work."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from django.db import transaction
from django.utils.module_loading import import_string

from flows.conf import conf

logger = logging.getLogger("outlast.dispatch")

#: How many workflows one message may stand for.
PER_MESSAGE = 10


@dataclass(frozen=True, slots=True)
class Hint:
    """Work of `queue` is ready. `label` is what Flower shows: the flow and node in the author's words."""

    queue: str
    label: str
    ids: tuple[str, ...] = ()


class Dispatcher(Protocol):
    """Publishes hints to whatever carries them."""

    def publish(self, hints: Sequence[Hint]) -> None:
        """Send the hints; may raise, the caller does not mind."""

    def look_soon(self, seconds: float, what: str = "") -> None:
        """Have the timers, or the watch of that name, looked at in that many seconds (about a second at most)."""

    def service(self) -> None:
        """Operations are due: have a servicing turn look at them."""

    def health(self) -> str:
        """One line on whether hints can be published now."""


@lru_cache(maxsize=4)
def _dispatcher(path: str) -> Dispatcher | None:
    return import_string(path) if path else None


def dispatcher() -> Dispatcher | None:
    """The configured dispatcher, or None."""
    return _dispatcher(conf.DISPATCHER)


def after_commit(hints: Iterable[Hint], using: str) -> None:
    """Publish once the caller's transaction has committed (at once outside one)."""
    ready = list(hints)
    if ready:
        transaction.on_commit(lambda: publish(ready), using=using)


def publish(hints: Sequence[Hint]) -> None:
    """Publish now. Whatever goes wrong is logged; the rows are the truth and the dispatch sweep finds them."""
    _quietly("publish", hints)


def look_soon(seconds: float, what: str = "") -> None:
    """Ask for a look at the timers in `seconds`, or at what the watch of that name is for. Two looks at once are harmless."""
    _quietly("look_soon", max(0.0, seconds), what)


def service() -> None:
    """Ask for a servicing turn."""
    _quietly("service")


def service_after_commit(using: str) -> None:
    """Ask for a servicing turn once the caller's transaction has committed."""
    transaction.on_commit(service, using=using)


def _quietly(verb: str, *arguments: Any) -> None:
    target = dispatcher()
    if target is None:
        return
    try:
        getattr(target, verb)(*arguments)
    except Exception as error:  # noqa: BLE001 - any broker trouble only costs latency
        logger.warning("hint not published (%s): %s; the dispatch sweep will find the work", verb, type(error).__name__)


def hints_for(rows: Iterable[tuple[Any, str, str, str]]) -> list[Hint]:
    """Hints for ready rows of (id, queue, flow name, node), at most `PER_MESSAGE` workflows to a message."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row_id, queue, flow_name, node in rows:
        groups.setdefault((queue, f"{flow_name}.{node}"), []).append(str(row_id))
    return [
        Hint(queue, label, tuple(ids[start : start + PER_MESSAGE]))
        for (queue, label), ids in groups.items()
        for start in range(0, len(ids), PER_MESSAGE)
    ]
