"""Worker incarnations and their leases. Dead is final; leases use the database's real clock, never the movable one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.core.releases import ANY
from flows.store import holds
from flows.store.sql import run


@dataclass(frozen=True, slots=True)
class Process:
    """What identifies a process on a host: enough to prove later that exactly this process is gone."""

    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    started: str


REGISTER = f"""
INSERT INTO outlast_worker (
    id, name, status, host, boot_id, pid_namespace, pid, process_started, region, host_class, placements, queues, definitions, releases,
    concurrency, lease_until, renewed_at, started_at)
VALUES (
    %(id)s::uuid, %(name)s, 'alive', %(host)s, %(boot_id)s, %(pid_namespace)s, %(pid)s::int, %(started)s, %(region)s, %(host_class)s,
    %(placements)s::text[], %(queues)s::text[], %(definitions)s::text[], %(releases)s::text[],
    %(concurrency)s::int,
    statement_timestamp() + %(lease)s::float8 * interval '1 second', statement_timestamp(), statement_timestamp())
ON CONFLICT (name) WHERE status = 'alive' DO NOTHING
RETURNING {holds.ANY}
"""


def register(params: dict[str, Any], process: Process, using: str) -> bool | None:
    """Begin a new incarnation; whether anything is held. None: a live row has the name.

    `params` holds id, name, region, host_class, placements, queues, definitions, concurrency, lease (seconds), and releases
    (left away: whatever it is given).
    """
    identity = {
        "host": process.host,
        "boot_id": process.boot_id,
        "pid_namespace": process.pid_namespace,
        "pid": process.pid,
        "started": process.started,
    }
    rows = run("register worker", REGISTER, {"releases": [ANY], **params, **identity}, using)
    return bool(rows[0][0]) if rows else None


RENEW = f"""
UPDATE outlast_worker SET lease_until = statement_timestamp() + %(lease)s::float8 * interval '1 second',
    renewed_at = statement_timestamp()
WHERE id = %(id)s::uuid AND status = 'alive' AND lease_until > statement_timestamp()
RETURNING (SELECT extract(epoch FROM statement_timestamp() - ticked_at)::float8 FROM outlast_tick WHERE id = 1), {holds.ANY}
"""


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a worker learns when it renews: the age of the last clock tick in seconds, and whether anything is held."""

    age: float
    holds: bool


def renew(worker: UUID, lease: float, using: str) -> Renewed | None:
    """Extend the lease; None: it is lost, register anew."""
    rows = run("renew lease", RENEW, {"id": worker, "lease": lease}, using)
    if not rows:
        return None
    age, held = rows[0]
    return Renewed(float("inf") if age is None or age < 0 else float(age), held)


STOP = """
UPDATE outlast_worker SET status = 'stopped', ended_at = statement_timestamp(), lease_until = statement_timestamp()
WHERE id = %(id)s::uuid AND status = 'alive' RETURNING id
"""


def stop(worker: UUID, using: str) -> bool:
    """The incarnation ends itself; what it still owns may be put back at once."""
    return bool(run("stop worker", STOP, {"id": worker}, using))


BURY = """
UPDATE outlast_worker SET status = 'dead', ended_at = statement_timestamp()
WHERE status = 'alive' AND (lease_until <= statement_timestamp() OR id = %(proven)s::uuid)
RETURNING id, name
"""


def bury(using: str, proven: UUID | None = None) -> list[tuple[UUID, str]]:
    """Make workers dead whose lease is over, and the one whose process is proven gone."""
    return [(row[0], row[1]) for row in run("bury workers", BURY, {"proven": proven}, using)]


NAMED = """
SELECT id, host, boot_id, pid_namespace, pid, process_started FROM outlast_worker WHERE name = %(name)s AND status = 'alive'
"""


def alive_named(name: str, using: str) -> tuple[UUID, Process] | None:
    """The live incarnation of that name."""
    rows = run("alive worker", NAMED, {"name": name}, using)
    return (rows[0][0], Process(*rows[0][1:])) if rows else None
