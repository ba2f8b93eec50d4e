"""What the doctor asks of the record: bounded statements, none of which writes."""

from __future__ import annotations

from dataclasses import dataclass

from flows.store.sql import run

#: Whatever is asked here is over after this; a record that is too busy to answer is a finding of its own.
PATIENCE = "3s"

SERVER = """
SELECT current_setting('server_version_num')::int, extract(epoch FROM clock_timestamp())::float8,
    extract(epoch FROM flows_now() - statement_timestamp())::float8,
    (SELECT extract(epoch FROM statement_timestamp() - ticked_at)::float8 FROM outlast_tick WHERE id = 1)
"""


@dataclass(frozen=True, slots=True)
class Server:
    """The server's version, its clock, by how much the durable clock is moved, and the age of the last tick (None: there was none)."""

    version: int
    now: float
    moved: float
    ticked: float | None


def server(using: str) -> Server:
    """How the server stands."""
    return Server(*run("doctor server", SERVER, {}, using)[0])


WORKERS = """
SELECT k.name, k.queues, k.definitions, k.releases FROM outlast_worker k
WHERE k.status = 'alive' AND k.lease_until > statement_timestamp() ORDER BY k.name
"""


@dataclass(frozen=True, slots=True)
class Alive:
    """A live worker, and what it offers."""

    name: str
    queues: list[str]
    definitions: list[str]
    releases: list[str]


def workers(using: str) -> list[Alive]:
    """Those whose lease holds."""
    return [Alive(*row) for row in run("doctor workers", WORKERS, {}, using)]


#: Live runs by version, counted up to a limit: of those that are ready, and of those that wait.
LIVE = """
SELECT x.flow_name, x.flow_version, count(*)::int, count(*) FILTER (WHERE x.status = 'runnable')::int FROM (
    (SELECT w.flow_name, w.flow_version, w.status FROM outlast_workflow w WHERE w.status = 'runnable' LIMIT %(most)s::int)
    UNION ALL
    (SELECT w.flow_name, w.flow_version, w.status FROM outlast_workflow w WHERE w.status IN ('waiting', 'paused') LIMIT %(most)s::int)
) x GROUP BY 1, 2 ORDER BY 1, 2
"""


def live(most: int, using: str) -> list[tuple[str, int, int, int]]:
    """(flow, version, live runs, those of them that are ready), of at most so many ready and so many waiting ones."""
    return [(row[0], row[1], row[2], row[3]) for row in run("doctor live", LIVE, {"most": most}, using)]
