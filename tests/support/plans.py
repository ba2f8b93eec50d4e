"""Generic plans of the store's statements: what they read, and by which index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.db import connection, transaction
from psycopg import sql

from flows.store.sql import _numbered
from tests.support.races import wait_for

#: A page or two, kept so on purpose: reading them whole is what a planner should do.
SMALL = {
    "outlast_worker", "outlast_tick", "outlast_bulk", "outlast_rollup", "outlast_retention", "outlast_scan", "outlast_release",
    "outlast_current_release",
}  # fmt: skip


LEFT_OPEN = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND state LIKE 'idle in transaction%'
"""
LOOKS_BACK = """
SELECT EXISTS (SELECT FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL))
"""


def let_nobody_look_back() -> None:
    """End what an earlier test left open, and wait for the autovacuum: while either can still see dead rows, those are read again and again."""

    def alone() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(LEFT_OPEN)
            cursor.execute(LOOKS_BACK)
            return not cursor.fetchone()[0]

    wait_for(alone)


@dataclass
class Plan:
    """One executed plan: the indexes it used, the tables it read from end to end, and the pages it touched."""

    pages: int
    indexes: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    text: str = ""


def explain(statement: str, params: Mapping[str, Any]) -> Plan:
    """Run the statement with the plan that a long-lived session uses, and take it back."""
    text, names = _numbered(statement)
    values = sql.SQL(", ").join(sql.Literal(params[name]) for name in names)
    call = sql.SQL("EXECUTE looked_at({})").format(values) if names else sql.SQL("EXECUTE looked_at")
    with transaction.atomic():
        connection.ensure_connection()
        raw: psycopg.Connection[Any] = connection.connection
        raw.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        raw.execute(sql.SQL("PREPARE looked_at AS {}").format(sql.SQL(text.decode())))  # type: ignore[arg-type]
        row = raw.execute(sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}").format(call)).fetchone()
        raw.execute("DEALLOCATE looked_at")
        transaction.set_rollback(True)
    assert row is not None
    found = row[0] if isinstance(row[0], list) else json.loads(row[0])
    top = found[0]["Plan"]
    plan = Plan(top.get("Shared Hit Blocks", 0) + top.get("Shared Read Blocks", 0), text=json.dumps(found, indent=1))
    for node in _nodes(top):
        if name := node.get("Index Name"):
            plan.indexes.add(name)
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] not in SMALL:
            plan.whole.add(node["Relation Name"])
    return plan


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", []):
        yield from _nodes(inner)
