"""The liveness scan: each kind one bounded statement; what it finds is kept; what mends itself is mended.

    due ──► taken ──► of each kind: alone? ──► look ──► find, go        one short transaction, at most SWEEP_BATCH rows, 2 s
                                                  └──► mended one by one, each in a transaction of its own ──► repaired, or tried
Race: two scans: the first takes what is due, the advisory lock of the kind keeps the second one out, and the pair is unique. A kind that takes
too long, or fails, is told, and holds up no other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured
from django.db import Error

from flows.conf import DEFAULTS, conf
from flows.core.liveness import KINDS, REPEATS, OrphanKind
from flows.core.misuse import UnknownOrphanKind
from flows.services import identify
from flows.services.apart import apart
from flows.services.liveness import searches
from flows.services.liveness.mending import NotHere, mend
from flows.services.releasing import deciding
from flows.store import findings as store
from flows.store import orphans
from flows.store.sql import committing

logger = logging.getLogger("outlast.liveness")

#: No statement of a scan takes longer, in milliseconds.
BOUND = 2000

TOO_LONG = f"it took longer than {BOUND / 1000:g} s"
CANCELLED_BY_TIME = "57014"


@dataclass(frozen=True, slots=True)
class Scanned:
    """How the scan of a kind went: found and still there, found for the first time, repaired; `problem`: why it was not looked for."""

    kind: str
    found: int = 0
    new: int = 0
    repaired: int = 0
    seconds: float = 0.0
    whole: bool = True
    problem: str = ""


def interval() -> float | None:
    """Seconds between two scans, as the setting says; None: there are none. What is no number is told by the checks."""
    try:
        return None if conf.LIVENESS_SECONDS is None else float(conf.LIVENESS_SECONDS)
    except (ImproperlyConfigured, TypeError, ValueError):
        return float(DEFAULTS["LIVENESS_SECONDS"])


def scan_due(using: str) -> list[Scanned]:
    """Scan, if a scan is due and nobody else has begun it."""
    seconds = interval()
    return scan(using=using) if seconds is not None and store.begin(seconds, using) else []


def scan(*, kinds: Iterable[str] | None = None, repair: bool = True, using: str | None = None) -> list[Scanned]:
    """Look through the record for orphans now, and mend what mends itself.

    Args:
        kinds: only these. repair: False finds and mends nothing.
    Raises:
        UnknownOrphanKind: there is none of that name.
    """
    alias = identify.alias(using)
    wanted = list(KINDS if kinds is None else kinds)
    for name in wanted:
        if name not in KINDS:
            raise UnknownOrphanKind(name, sorted(KINDS))
    known = deciding()
    return [done for name in wanted if (done := _scan(KINDS[name], known, alias, repair=repair)) is not None]


def _statement(kind: str) -> str | None:
    search = searches.of(kind)
    return search.statement if search is not None else orphans.SEARCHES.get(kind)


def _scan(kind: OrphanKind, known: list[str], using: str, *, repair: bool) -> Scanned | None:
    """None: this process does not know how to look for it, or somebody else is at it."""
    statement = _statement(kind.name)
    if statement is None:
        return None
    begun = time.monotonic()
    try:
        found = _look(kind, statement, known, using)
    except Error as error:
        if getattr(error.__cause__, "sqlstate", None) != CANCELLED_BY_TIME:
            logger.exception("the scan for %s failed", kind.name)
        problem = TOO_LONG if getattr(error.__cause__, "sqlstate", None) == CANCELLED_BY_TIME else str(error)[:500]
        logger.error("orphans of the kind %s were not looked for: %s", kind.name, problem)
        seconds = time.monotonic() - begun
        store.done(kind.name, seconds, 0, using, whole=False, problem=problem)
        return Scanned(kind.name, seconds=seconds, whole=False, problem=problem)
    if found is None:
        return None
    kept, whole = found
    seconds = time.monotonic() - begun
    for _, subject, new, _ in kept:
        if new:
            logger.error("%s: %s, %s", kind.name, subject, kind.broken)
    mended = _mend(kind, [row[1] for row in kept], using) if repair and kind.repair is not None else 0
    store.done(kind.name, seconds, len(kept) - mended, using, whole=whole)
    return Scanned(kind.name, len(kept) - mended, sum(row[2] for row in kept), mended, seconds, whole)


def _look(kind: OrphanKind, statement: str, known: list[str], using: str) -> tuple[list[tuple[int, str, bool, str]], bool] | None:
    limit = int(conf.SWEEP_BATCH)
    with committing("scan", using):
        if not store.alone(kind.name, using):
            return None
        store.bound(BOUND, using)
        seen = orphans.look(kind.name, statement, using, limit=limit, patience=float(kind.patience), deciding=known)
        once = list({one.subject: one for one in seen}.values())
        kept = store.find(kind.name, once, using)
        whole = len(seen) < limit
        if whole:
            store.go(kind.name, [one.subject for one in once], using)
    return kept, whole


def _mend(kind: OrphanKind, subjects: list[str], using: str) -> int:
    count = 0
    for finding in store.wanted(kind.name, subjects, REPEATS, using) if subjects else ():
        hits: list[bool] = []
        with apart(f"the repair of {kind.name} {finding}", using):
            try:
                hits.append(mend_one(finding, using))
            except NotHere:
                hits.append(False)
        if not hits:  # it has failed, and what it had written is rolled back
            store.tried(finding, using)
        count += sum(hits)
    return count


def mend_one(finding: int, using: str) -> bool:
    """Mend one that is there by what mends its kind; False: it hit nothing, or somebody else is at it. One transaction."""
    with committing("repair", using):
        row = store.lock(finding, using)
        if row is None:
            return False
        repair = KINDS[row.kind].repair
        assert repair is not None
        if not mend(repair, row, using):
            store.tried(finding, using)
            return False
        store.repaired(finding, repair.value, using)
    logger.warning("%s: %s is repaired (%s)", row.kind, row.subject, repair)
    return True
