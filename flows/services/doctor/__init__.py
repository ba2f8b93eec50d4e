"""The doctor: looks at what must be there for runs to move, and says what is not, each with the way out. It changes nothing.

`examine` asks every examination that is registered; a room that knows more (the broker, a host's Celery settings) registers its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from django.db import connections, transaction

from flows.services import identify
from flows.store.doctor import PATIENCE

logger = logging.getLogger("outlast.doctor")


class Level(StrEnum):
    """error: runs do not move, or are in danger. warning: they move, and something is wrong or costs. note: so it is, on purpose."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Ill:
    """One thing that is not as it should be. `way_out`: what to do about it."""

    code: str
    level: Level
    what: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Examined:
    """What was looked at, and what is wrong."""

    looked: tuple[str, ...]
    found: tuple[Ill, ...]

    @property
    def worst(self) -> Level | None:
        """The worst level; None: nothing was found."""
        return next((level for level in Level if any(ill.level is level for ill in self.found)), None)


Examination = Callable[[str], Iterator[Ill]]

_examinations: dict[str, Examination] = {}


def register(name: str, examination: Examination) -> None:
    """Have the doctor look at this, too; called with the alias of the record's database. Called from `AppConfig.ready`."""
    _examinations[name] = examination


def examine(*, using: str | None = None) -> Examined:
    """Look at everything. What cannot be looked at is a finding; nothing is raised."""
    from flows.services.doctor import record  # its examinations read the record's models

    alias = identify.alias(using)
    looked, found = [], []
    reachable = True
    for name, examination in [("database", record.database), *record.EXAMINATIONS.items(), *_examinations.items()]:
        if name in record.EXAMINATIONS and not reachable:
            continue
        looked.append(name)
        ills = _examined(name, examination, alias)
        found += ills
        if name == "database":
            reachable = not any(ill.level is Level.ERROR for ill in ills)
    order = list(Level)
    return Examined(tuple(looked), tuple(sorted(found, key=lambda ill: order.index(ill.level))))


def _examined(name: str, examination: Examination, using: str) -> list[Ill]:
    try:
        return list(examination(using))
    except Exception as error:
        logger.warning("the examination of %s failed", name, exc_info=error)
        return [
            Ill(
                "NOT_EXAMINED",
                Level.ERROR,
                f"The {name} could not be looked at: {type(error).__name__}: {str(error).partition(chr(10))[0][:200]}",
                "Look at what the error says; a record that does not answer within seconds is too busy.",
            )
        ]


@contextmanager
def bounded(using: str) -> Iterator[None]:
    """A transaction whose statements are over within `PATIENCE`."""
    with transaction.atomic(using=using):
        with connections[using].cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = '{PATIENCE}'")
        yield
