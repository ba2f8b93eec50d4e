"""The queries of the liveness scan: for each kind one statement, over the partial indexes of live rows, which gives (subject, run, facts).

Parameters: limit; patience, in seconds, where the kind has one; deciding, the `name@version` of flows whose policy lets another release
decide; needing, what of this process's flows needs which dependency. What another app knows about stands there, and is registered
(`flows.services.liveness.searches`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

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

_NAMED = re.compile(r"%\((\w+)\)s")


def look(kind: str, statement: str, using: str, *, limit: int, patience: float, deciding: Sequence[str]) -> list[Found]:
    """What that statement finds, at most `limit`."""
    given = {"limit": limit, "patience": patience, "deciding": list(deciding), "needing": holds.needing()}
    params = {name: given[name] for name in set(_NAMED.findall(statement))}
    return [Found(row[0], row[1], loads(row[2])) for row in run(f"scan {kind}", statement, params, using)]
