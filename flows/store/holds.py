"""Holds: a filter of what workers take up. Nothing is written to a workflow, so that a hold of 100,000 is one row, and its lift one, too."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from flows import registry
from flows.store.sql import run

#: Whether anything is held at all: not about a row, so that a statement looks once, at an index that is empty most of the time.
ANY = "EXISTS (SELECT FROM outlast_hold WHERE lifted_at IS NULL)"

#: Whether an open hold `h` is about the workflow {w}, at the node {node}. What needs which dependency only a process knows that has the flow:
#: it says so in %(needing)s (`registry.Known.needing`).
ABOUT = """h.lifted_at IS NULL AND (
    h.scope = 'all' OR h.scope = 'flow' AND h.name = {w}.flow_name OR h.scope = 'key' AND h.name = {w}.key
    OR h.scope = 'tenant' AND h.name = {w}.tenant
    OR h.scope = 'dependency' AND h.name || chr(10) || {w}.flow_name || '@' || {w}.flow_version || chr(10) || {node}
       = ANY (%(needing)s::text[]))"""


def held(w: str) -> str:
    """The SQL condition that a hold is about the workflow of that alias; its parameter is `needing`."""
    about = ABOUT.format(w=w, node=f"{w}.node")
    return f"({ANY} AND EXISTS (SELECT FROM outlast_hold h WHERE {about}))"


def free(w: str) -> str:
    """The condition that nothing holds the workflow of that alias. Where everything is held, no row is read at all."""
    return f"NOT EXISTS (SELECT FROM outlast_hold WHERE lifted_at IS NULL AND scope = 'all') AND NOT {held(w)}"


def needing() -> list[str]:
    """What of this process's flows needs which dependency."""
    return registry.known().needing


@dataclass(frozen=True, slots=True)
class Row:
    """One hold."""

    id: int
    scope: str
    name: str
    by: str
    reason: str
    since: datetime
    lifted_at: datetime | None


COLUMNS = "h.id, h.scope, h.name, h.by_label, h.reason, h.since, h.lifted_at"

ADD = f"""
INSERT INTO outlast_hold AS h (scope, name, user_id, by_label, reason, since)
VALUES (%(scope)s, %(name)s, %(user)s, %(by)s, %(reason)s, flows_now())
ON CONFLICT (scope, name) WHERE lifted_at IS NULL DO NOTHING
RETURNING {COLUMNS}
"""

OPEN = f"SELECT {COLUMNS} FROM outlast_hold h WHERE h.lifted_at IS NULL ORDER BY h.since, h.id"
OPEN_OF = f"SELECT {COLUMNS} FROM outlast_hold h WHERE h.lifted_at IS NULL AND h.scope = %(scope)s AND h.name = %(name)s"


def add(scope: str, name: str, *, user: Any, by: str, reason: str, using: str) -> Row | None:
    """Open a hold; None: this is held already."""
    params = {"scope": scope, "name": name, "user": user, "by": by, "reason": reason}
    rows = run("hold", ADD, params, using)
    return Row(*rows[0]) if rows else None


def open_of(scope: str, name: str, using: str) -> Row | None:
    """The open hold of exactly this."""
    rows = run("open hold", OPEN_OF, {"scope": scope, "name": name}, using)
    return Row(*rows[0]) if rows else None


def opened(using: str) -> list[Row]:
    """All open holds, the oldest first."""
    return [Row(*row) for row in run("open holds", OPEN, {}, using)]


LIFT = f"""
UPDATE outlast_hold h SET lifted_at = flows_now(), lifted_by = %(by)s, lifted_reason = %(reason)s
WHERE h.scope = %(scope)s AND h.name = %(name)s AND h.lifted_at IS NULL
  AND h.id = coalesce(%(seen)s::bigint, h.id)
RETURNING {COLUMNS}
"""


def lift(scope: str, name: str, *, by: str, reason: str, seen: int | None, using: str) -> Row | None:
    """Lift it; None: it is not held (any more), or not by the hold `seen`."""
    rows = run("lift", LIFT, {"scope": scope, "name": name, "by": by, "reason": reason, "seen": seen}, using)
    return Row(*rows[0]) if rows else None


OF = f"""
SELECT {COLUMNS} FROM outlast_workflow w JOIN outlast_hold h ON {ABOUT.format(w="w", node="coalesce(%(node)s, w.node)")}
WHERE w.id = %(id)s::uuid ORDER BY h.since, h.id
"""


def of(workflow: UUID, using: str, node: str | None = None) -> list[Row]:
    """The open holds that are about a workflow, at its node or at another."""
    return [Row(*row) for row in run("holds of workflow", OF, {"id": workflow, "node": node, "needing": needing()}, using)]


READY = f"""
SELECT count(*)::int FROM (
    SELECT FROM outlast_workflow w JOIN outlast_hold h ON {ABOUT.format(w="w", node="w.node")}
    WHERE w.status = 'runnable' AND h.id = %(id)s::bigint LIMIT %(most)s::int) x
"""


def ready(hold: int, most: int, using: str) -> int:
    """How many ready runs a hold keeps from being taken up; counted up to `most`."""
    found: int = run("held ready", READY, {"id": hold, "most": most, "needing": needing()}, using)[0][0]
    return found
