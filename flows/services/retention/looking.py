"""The looks of retention: what the clock does, and what the command does at once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core.belonging import Span
from flows.core.retention import Retention, read
from flows.services.retention.archiving import Archiving
from flows.store import aging, retention
from flows.store.aging import Progress
from flows.store.sql import committing

logger = logging.getLogger("outlast.retention")

#: Seconds between two looks, and while there is more to do.
PAUSE = 600.0
BUSY = 10.0
#: Runs that one look deletes at most; ended runs, and rows with a span, that it looks at for them.
BATCH = 500
WINDOW = 5000
#: Runs that one transaction deletes.
AT_ONCE = 100

Place = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look did: runs that it deleted, rows by the name of their span, whether there may be more, and where it ended."""

    deleted: int
    rows: dict[str, int]
    more: bool
    progress: Progress


def rules() -> Retention:
    """The setting.

    Raises:
        BadRetention: it says something that cannot be.
    """
    return read(conf.RETENTION)


def look(using: str) -> int:
    """One look of the clock, if it is due and nobody else has it; how many runs were deleted."""
    given = rules()
    claimed = aging.claim(PAUSE, using)
    if claimed is None:
        return 0
    found = once(given, claimed, using)
    aging.done(found.progress, found.deleted, BUSY if found.more else PAUSE, using)
    if found.deleted or found.rows:
        logger.info("retention deleted %d runs and %s", found.deleted, found.rows or "no other rows")
    return found.deleted


def once(given: Retention, progress: Progress, using: str, limit: int = BATCH) -> Looked:
    """One batch, from where the last one ended."""
    deleted, after, more = _runs(given, progress.after, using, limit)
    rows: dict[str, int] = {}
    places = dict(progress.spans)
    for span in registry.spans():
        days = given.spans.get(span.name)
        if days is None:
            continue
        count, places[span.table], unfinished = _aged(span, days, places.get(span.table, 0), using)
        more = more or unfinished
        if count:
            rows[span.name] = rows.get(span.name, 0) + count
    return Looked(deleted, rows, more, replace(progress, after=after, spans=places))


def everything(given: Retention, using: str) -> Iterator[Looked]:
    """Batch after batch from the beginning, until nothing is left to do. The looks of the clock keep their own place."""
    progress = Progress(None, {})
    while True:
        found = once(given, progress, using)
        yield found
        progress = found.progress
        if not found.more:
            return


def _runs(given: Retention, after: Place | None, using: str, limit: int) -> tuple[int, Place | None, bool]:
    """How many runs were deleted, where the look ended (None: at the end), and whether there may be more."""
    if given.least is None:
        return 0, None, False
    ended = retention.seen(given, after, WINDOW, using)
    chosen: list[UUID] = []
    place = after
    for one in ended:
        if one.free and len(chosen) == limit:
            break
        place = (one.created_at, one.id)
        chosen += [one.id] if one.free else []
    deleted = _deleted(chosen, given, using)
    stopped = bool(ended) and place != (ended[-1].created_at, ended[-1].id)
    more = stopped or len(ended) == WINDOW
    return deleted, place if more else None, more


def _deleted(chosen: list[UUID], given: Retention, using: str) -> int:
    count = 0
    archiving = Archiving(given, using)
    archiving.write(chosen)
    for first in range(0, len(chosen), AT_ONCE):
        count += _gone(chosen[first : first + AT_ONCE], given, archiving, using)
    return count


def _gone(ids: list[UUID], given: Retention, archiving: Archiving, using: str) -> int:
    with committing("delete runs", using):
        free = archiving.unchanged(retention.lock(ids, given, using))
        if free:
            archiving.keep(free)
            registry.leaving(free, using)
            retention.delete(free, using)
    return len(free)


def _aged(span: Span, days: float, after: int, using: str) -> tuple[int, int, bool]:
    """How many rows were deleted, after which id the next look begins, and whether there may be more."""
    seen = aging.aged(span, days, after, WINDOW, using)
    going: list[int] = []
    place = after
    for row, old, free in seen:
        if not old or len(going) == BATCH:
            break
        place = row
        going += [row] if free else []
    count = 0
    if going:
        with committing("delete rows", using):
            count = aging.delete_aged(span, going, using)
    full = len(going) == BATCH or (len(seen) == WINDOW and place == seen[-1][0])
    return count, place if full else 0, full


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What retention would do with the ended runs of a flow: `due` would go, `kept` are old enough and something still needs them."""

    flow: str
    due: int
    kept: int


def foresee(given: Retention, using: str) -> list[Foreseen]:
    """What everything that is there means by the rules as they are; nothing is changed."""
    due: dict[str, int] = {}
    kept: dict[str, int] = {}
    after: Place | None = None
    while given.least is not None:
        ended = retention.seen(given, after, WINDOW, using)
        for one in ended:
            into = due if one.free else kept
            if one.old:
                into[one.flow] = into.get(one.flow, 0) + 1
        if len(ended) < WINDOW:
            break
        after = (ended[-1].created_at, ended[-1].id)
    return [Foreseen(flow, due.get(flow, 0), kept.get(flow, 0)) for flow in sorted({*due, *kept})]
