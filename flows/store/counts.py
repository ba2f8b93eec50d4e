"""How many runs there are of each status, and open waits of each kind: counted up to a limit, each by an index, in one statement."""

from __future__ import annotations

from flows.core.protocol import WAIT_KINDS, Status
from flows.store.sql import run

#: Nobody needs to know more: it says "or more".
MOST = 1000

#: What finds the rows of a status by an index: of running ones that of their workers, as every hot arrow says `status = 'running'`.
_ROWS = {
    **{status: f"outlast_workflow WHERE status = '{status}'" for status in Status},
    Status.RUNNING: "outlast_workflow WHERE status = 'running' AND worker_id IS NOT NULL",
}

COUNT = " UNION ALL ".join(
    [f"SELECT '{name}', count(*)::int FROM (SELECT FROM {rows} LIMIT {MOST + 1}) x" for name, rows in _ROWS.items()]
    + [
        f"SELECT 'wait:{kind}', count(*)::int FROM (SELECT FROM outlast_wait WHERE status = 'open' AND kind = '{kind}' LIMIT {MOST + 1}) x"
        for kind in WAIT_KINDS
    ]
)


def count(using: str) -> tuple[dict[str, int], dict[str, int]]:
    """(status → runs, kind of wait → open ones); `MOST` + 1 stands for more."""
    found = dict(run("counts", COUNT, {}, using))
    waits = {name.removeprefix("wait:"): number for name, number in found.items() if name.startswith("wait:")}
    return {name: number for name, number in found.items() if name in _ROWS}, waits
