"""Erasing what ended runs were given, made and were told (docs/how-to/retention.md). The log, digests, decisions and ledgers stay.

    ended ──► ended, erased     by a person, with a reason; one arrow a run, whose row of the log says so
Guard: it has ended, and was not erased before. Race: of two that erase, one writes the row; retention that deletes the run wins or comes later.
A crash in the middle: a batch is whole or not at all, and the same call does the rest. There is no way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows import registry
from flows.core.misuse import NobodyErases
from flows.services import identify, warrant
from flows.services.retention import erased_archives
from flows.store import erasing as store
from flows.store.sql import committing

PERMISSION = "outlast_flows.erase_workflow"
#: Runs that one transaction erases.
AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Erased:
    """What became of it.

    Attributes:
        runs: those that were erased now. already: those that had been before. live: those that were left
            as they are: they have not ended, something of them is owed, in doubt or asked, or a live run reads their result.
        archived: archived runs whose record in the table was erased. files: files of archives that have some, which nobody writes anew here.
    """

    runs: tuple[UUID, ...]
    already: int
    live: tuple[UUID, ...]
    archived: int
    files: tuple[str, ...]


def erase_user(user: Any, *, by: Any, reason: str, using: str | None = None) -> Erased:
    """Erase the values of every ended run that this user is accountable for, and of its children.

    Args:
        user: whose runs; a stored user. by: who says so; needs `erase_workflow`. reason: why, for the log.
    Raises:
        NobodyErases, NotPermitted, ReasonMissing: nothing was done.
    """
    alias = identify.alias(using)
    whose = identify.user_key(user)
    who, why = _allowed(by, reason, alias)
    return _erased(store.of_user(whose, alias), who, why, alias)


def erase_key(flow: str, key: str, *, by: Any, reason: str, using: str | None = None) -> Erased:
    """The same of the run with that key, and of its children.

    Raises:
        NobodyErases, NotPermitted, ReasonMissing: nothing was done.
    """
    alias = identify.alias(using)
    who, why = _allowed(by, reason, alias)
    return _erased(store.of_key(flow, key, alias), who, why, alias)


def _allowed(by: Any, reason: str, using: str) -> tuple[str, str]:
    identify.user(by, NobodyErases)
    warrant.check(by, PERMISSION, using)
    return identify.label(by), warrant.reason(reason, "why these values are erased")


def _erased(found: store.Found, who: str, why: str, using: str) -> Erased:
    ended = [one for one, over in found.runs if over]
    done: list[UUID] = []
    for first in range(0, len(ended), AT_ONCE):
        done += _batch(ended[first : first + AT_ONCE], who, why, using)
    live = tuple(one for one, over in found.runs if not over)
    kept = erased_archives.erase([one for one, file in found.archived if not file], using)
    files = tuple(sorted({file for _, file in found.archived if file}))
    return Erased(tuple(done), len(ended) - len(done), live, kept, files)


def _batch(ids: Sequence[UUID], who: str, why: str, using: str) -> list[UUID]:
    with committing("erase runs", using):
        held = store.lock(ids, using)
        done = store.erase(held, who, why, using)
        if held:  # also of those that were erased before: what came too late to be, is now
            registry.leaving(held, using)
            store.rest(held, using)
    return done
