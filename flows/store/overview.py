"""How everything is now, in one statement: each count up to a limit and by an index, ages of what is oldest, the clock and the workers."""

from __future__ import annotations

from dataclasses import dataclass

from flows.core.effects import OperationKind, OperationStatus
from flows.core.protocol import ASKING, CommitmentStatus
from flows.store.counts import MOST
from flows.store.sql import literals, run

_MITIGATING = literals((OperationKind.COMPENSATION.value, OperationKind.RELEASE.value))

#: What is counted → its rows, and what says since when each is so.
_ROWS = {
    "ready": ("outlast_workflow WHERE status = 'runnable'", "updated_at"),
    "requests": (f"outlast_wait WHERE status = 'open' AND kind IN ({literals(ASKING)})", "opened_at"),
    "doubts": (f"outlast_operation WHERE status = '{OperationStatus.UNCERTAIN}'", "doubt_since"),
    "mitigations": (
        f"outlast_operation WHERE status = '{OperationStatus.FAILED}' AND kind IN ({_MITIGATING}) AND due_at IS NULL",
        "flown_at",
    ),
    "breached": (f"outlast_commitment WHERE status = '{CommitmentStatus.BREACHED}'", "breached_at"),
    "events": (
        "outlast_event WHERE place = 'unclaimed' AND NOT place = '' AND NOT place IN ('taken', 'started')",
        "observed_at",
    ),
    "dependencies": ("outlast_dependency WHERE status <> 'healthy'", "since"),
    "findings": ("outlast_finding WHERE closed_at IS NULL AND status = 'open'", "first_seen"),
    "holds": ("outlast_hold WHERE lifted_at IS NULL", "since"),
    "workers": ("outlast_worker WHERE status = 'alive' AND lease_until > statement_timestamp()", "started_at"),
}

LOOK = " UNION ALL ".join(
    [
        f"SELECT '{name}', count(*)::int, extract(epoch FROM flows_now() - min(since))::float8 "
        f"FROM (SELECT {since} AS since FROM {rows} LIMIT {MOST + 1}) x"
        for name, (rows, since) in _ROWS.items()
    ]
    + ["SELECT 'tick', 1, extract(epoch FROM statement_timestamp() - max(ticked_at))::float8 FROM outlast_tick"]
)


@dataclass(frozen=True, slots=True)
class Seen:
    """How many, up to `MOST` + 1; and for how many seconds the oldest of those that were counted has been so."""

    count: int
    oldest: float | None


def look(using: str) -> dict[str, Seen]:
    """What there is, by name; `tick`: since the clock was last looked at."""
    return {name: Seen(count, oldest) for name, count, oldest in run("overview", LOOK, {}, using)}
