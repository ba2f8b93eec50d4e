"""A statement is planned when a worker first needs it, often while the tables are almost empty. That plan must be right when they are full.

The danger is an index of live rows only: over young tables it looks so small that reading all of it seems cheaper than looking one row up.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from psycopg import sql

from flows.store import (
    advance,
    allowances,
    attempts,
    budgets,
    candidates,
    claim,
    context,
    deadlines,
    events,
    leave,
    limits,
    load,
    locks,
    move,
    releases,
    slots,
    start,
    timers,
)
from flows.store.sql import _numbered

#: By which column of an index a row is found, in every statement that is about known rows.
KEYS = re.compile(
    r"\b(workflow_id|id|intent_id|budget_id|event_id|wait_id|limit_id|event_type|flow_name|type|release|name|key|label) ="
)
#: These are about whatever is ready, due or waiting, and read the index of just that.
MEANT = {
    ("claim.CLAIM", "outlast_workflow_queue_rank_idx"),
    ("claim.CLAIM_OFFERED", "outlast_workflow_queue_rank_idx"),
    ("timers.DUE", "outlast_timer_due_at_idx"),
    ("releases.COUNTS", "outlast_workflow_release_idx"),
    ("events.COPY", "outlast_event_event_id_payload_hash_idx"),
    ("limits.AWAITED", "outlast_wait_key_priority_deadline_at_id_idx"),
}
STATEMENTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": text
    for module in (
        advance,
        allowances,
        attempts,
        budgets,
        candidates,
        claim,
        context,
        deadlines,
        events,
        leave,
        limits,
        load,
        locks,
        move,
        releases,
        slots,
        start,
        timers,
    )
    for name, text in vars(module).items()
    if isinstance(text, str) and re.match(r"\s*(WITH|SELECT|UPDATE|INSERT|DELETE)\b", text)
}


def young(raw: psycopg.Connection[Any]) -> None:
    """Tables that were never filled and never analysed, whatever other tests did to the real ones."""
    raw.execute("CREATE SCHEMA young")
    for (table,) in raw.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'outlast%'"
    ).fetchall():
        raw.execute(sql.SQL("CREATE TABLE young.{0} (LIKE public.{0} INCLUDING ALL)").format(sql.Identifier(table)))
    raw.execute("SET LOCAL search_path = young, public")


def scans(name: str) -> list[dict[str, Any]]:
    text, names = _numbered(STATEMENTS[name])
    with transaction.atomic():
        connection.ensure_connection()
        raw = connection.connection
        young(raw)
        raw.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        raw.execute(sql.SQL("PREPARE young AS {}").format(sql.SQL(text.decode())))
        nothing = sql.SQL(", ").join([sql.SQL("NULL")] * len(names))
        call = sql.SQL("EXECUTE young({})").format(nothing) if names else sql.SQL("EXECUTE young")
        found = raw.execute(sql.SQL("EXPLAIN (FORMAT JSON) {}").format(call)).fetchone()[0]
        raw.execute("DEALLOCATE young")
        transaction.set_rollback(True)
    return [node for node in _nodes(found[0]["Plan"]) if "Scan" in node["Node Type"] and node["Node Type"] != "Bitmap Heap Scan"]


def _nodes(node: dict[str, Any]) -> Any:
    yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)


@pytest.mark.req("A4")
@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_a_plan_made_over_empty_tables_looks_rows_up(transactional_db: None, name: str) -> None:
    for scan in scans(name):
        index, cond = scan.get("Index Name"), scan.get("Index Cond", "")
        if index is not None and not index.startswith(("outlast_worker_", "outlast_hold_")):
            assert KEYS.search(cond) or (name, index) in MEANT, f"{name}: {index} by {cond!r}"
