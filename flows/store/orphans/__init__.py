"""The queries of the liveness scan: for each kind one statement, over the partial indexes of live rows, which gives (subject, run, facts).

Parameters: limit; patience, in seconds, where the kind has one; deciding, the `name@version` of flows whose policy lets another release
decide; needing, what of this process's flows needs which dependency; older and newer, the versions that a worker takes up
because it migrates them as they wake. What another app knows about stands there, and is registered
(`flows.services.liveness.searches`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flows import registry
from flows.store import holds
from flows.store.findings import Found
from flows.store.orphans import family, ledgers, outside, record, runs, waits
from flows.store.sql import loads, run

SEARCHES: Mapping[str, str] = {
    "ownerless": runs.OWNERLESS,
    "unhinted": runs.UNHINTED,
    "unoffered": runs.UNOFFERED,
    "migration": runs.MIGRATION,
    "behind": runs.BEHIND,
    "unwoken": waits.UNWOKEN,
    "timer_lost": waits.TIMER_LOST,
    "endless": waits.ENDLESS,
    "unprotected": outside.UNPROTECTED,
    "unserviced": outside.UNSERVICED,
    "uncertain": outside.UNCERTAIN,
    "misdirected": outside.MISDIRECTED,
    "unclaimed": outside.UNCLAIMED,
    "branch_uncounted": family.BRANCH_UNCOUNTED,
    "fan_adrift": family.FAN_ADRIFT,
    "slot_adrift": family.SLOT_ADRIFT,
    "unbalanced": ledgers.UNBALANCED,
    "unsettled": ledgers.UNSETTLED,
    "half": record.HALF,
}


def look(kind: str, statement: str, using: str, *, limit: int, patience: float, deciding: Sequence[str]) -> list[Found]:
    """What that statement finds, at most `limit`."""
    ways = [(pair, way[-1].version) for pair, way in registry.known().at_wake.items() if way]
    given = {
        "limit": limit,
        "patience": patience,
        "deciding": list(deciding),
        "needing": holds.needing(),
        "older": [f"{name}@{version}" for (name, version), _ in ways],
        "newer": [f"{name}@{to}" for (name, _), to in ways],
    }
    return [Found(row[0], row[1], loads(row[2])) for row in run(f"scan {kind}", statement, given, using)]
