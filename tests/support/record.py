"""What must hold in the record between tests: sound, nobody stranded, and empty for the next one."""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection, transaction

from flows.dispatch import Hint
from flows.services import describe, replay
from flows.store import invariants
from flows.store.sql import run

APPS = ("outlast_approvals", "outlast_flows", "admin", "sessions")
KEPT = ("outlast_tick", "outlast_rollup")

MEASURED = """
INSERT INTO outlast_rollup (id, looked_at, until, final) SELECT 1, statement_timestamp(), h.hour, h.hour
FROM (SELECT date_trunc('hour', flows_now(), 'UTC') AS hour) h
ON CONFLICT (id) DO UPDATE SET looked_at = excluded.looked_at, until = excluded.until, final = excluded.final
"""
KEPT_LONGER = "UPDATE outlast_retention SET next_at = statement_timestamp() + interval '1 hour'"


class Counting:
    """A dispatcher that publishes nothing and remembers what it was asked for."""

    def __init__(self) -> None:
        self.hints: list[Hint] = []
        self.looks: list[float] = []
        self.watched: list[str] = []
        self.services = 0

    def publish(self, hints: Sequence[Hint]) -> None:
        self.hints += hints

    def look_soon(self, seconds: float, what: str = "") -> None:
        self.looks.append(seconds)
        self.watched += [what] if what else []

    def service(self) -> None:
        self.services += 1

    def health(self) -> str:
        return "counting"

    def clear(self) -> None:
        self.hints, self.looks, self.watched, self.services = [], [], [], 0


#: Named in `OUTLAST["DISPATCHER"]` by the fixtures.
counting = Counting()
COUNTING = f"{__name__}.counting"


def tables() -> list[str]:
    """Every table that a test may have written."""
    models = [model for label in APPS for model in apps.get_app_config(label).get_models(include_auto_created=True)]
    names = [model._meta.db_table for model in models if model._meta.db_table not in KEPT]
    users = get_user_model()
    return [*names, users.groups.through._meta.db_table, users.user_permissions.through._meta.db_table,
            users._meta.db_table, Group.permissions.through._meta.db_table, Group._meta.db_table]  # fmt: skip


def let_be_measured() -> None:
    """The clock has nothing to measure for a minute, and nothing to delete: what a tick does is the test's own."""
    run("let be measured", MEASURED, {}, "default")
    run("let be kept", KEPT_LONGER, {}, "default")


def wipe(*, large: bool = False) -> None:
    """Empty the record; the append-only tables too, by their own switch. Few rows are deleted faster than a table is truncated."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL outlast.retention = 'on'")
        if large:
            cursor.execute(f"TRUNCATE {', '.join(tables())} RESTART IDENTITY CASCADE")
        else:
            cursor.execute("; ".join(f"DELETE FROM {table}" for table in tables()))


def unsound() -> list[str]:
    """Where log and row differ, over every workflow there is."""
    return [f"{row_id}: {differences}" for row_id, differences in describe.verify() if differences]


def astray() -> list[str]:
    """Workflows whose recorded way the engine would not go again: everything is replayed, of the flows that are known by now."""
    if connection.in_atomic_block:
        return []
    return [f"{found.flow} {found.id}: {found.drift}" for found in replay.replay() if found.drift is not None]


def as_replayed() -> None:
    """A replay of everything goes the recorded way."""
    found = astray()
    assert not found, "\n".join(found)


def stranded() -> list[str]:
    """Workflows that nothing would ever move again, found by plain SQL over what must hold between rows."""
    with connection.cursor() as cursor:
        cursor.execute(STRANDED)
        return [f"{row[0]}: {row[1]}" for row in cursor.fetchall()]


def unbalanced() -> list[str]:
    """Ledgers that their entries do not add up to, and what was set aside and never settled."""
    found = [
        (row[0], row[1])
        for query in (invariants.UNBALANCED, invariants.UNSETTLED)
        for row in run("ledgers", query, {}, "default")
    ]
    return [f"{row_id}: {what}" for row_id, what in found]


STRANDED = """
SELECT w.id, 'waits for nothing' FROM outlast_workflow w
WHERE w.status = 'waiting' AND NOT EXISTS (SELECT FROM outlast_wait o WHERE o.workflow_id = w.id AND o.status = 'open')
UNION ALL
SELECT w.id, 'its retry has no timer' FROM outlast_workflow w JOIN outlast_wait o ON o.workflow_id = w.id
WHERE w.status = 'waiting' AND o.status = 'open' AND o.kind IN ('retry_window', 'timer') AND o.due_since IS NULL
  AND NOT EXISTS (SELECT FROM outlast_timer t WHERE t.wait_id = o.id AND t.status = 'pending')
UNION ALL
SELECT o.workflow_id, 'a wait is both open and closed' FROM outlast_wait o WHERE (o.status = 'open') <> (o.closed_at IS NULL)
UNION ALL
SELECT t.workflow_id, 'a timer is both pending and fired' FROM outlast_timer t WHERE (t.status = 'pending') <> (t.fired_at IS NULL)
UNION ALL
SELECT w.id, 'two open waits' FROM outlast_workflow w JOIN outlast_wait o ON o.workflow_id = w.id AND o.status = 'open'
GROUP BY w.id HAVING count(*) > 1
UNION ALL
SELECT w.id, 'an open wait after the end' FROM outlast_workflow w JOIN outlast_wait o ON o.workflow_id = w.id AND o.status = 'open'
WHERE w.status IN ('complete', 'failed', 'cancelled', 'superseded')
UNION ALL
SELECT w.id, 'active_seq names an activity that is ' || coalesce(a.status, 'missing') FROM outlast_workflow w
LEFT JOIN outlast_activity a ON a.workflow_id = w.id AND a.seq = w.active_seq
WHERE w.active_seq IS NOT NULL
  AND a.status IS DISTINCT FROM (CASE WHEN w.status = 'running' THEN 'running' ELSE 'scheduled' END)
UNION ALL
SELECT w.id, 'an open activity that is not the active one' FROM outlast_workflow w
JOIN outlast_activity a ON a.workflow_id = w.id AND a.status IN ('scheduled', 'running') AND a.seq IS DISTINCT FROM w.active_seq
UNION ALL
SELECT w.id, 'active after its end' FROM outlast_workflow w
WHERE w.status IN ('complete', 'failed', 'cancelled', 'superseded') AND w.active_seq IS NOT NULL
UNION ALL
SELECT w.id, 'a pause is asked of a workflow that is ' || w.status FROM outlast_workflow w
WHERE w.pause_requested_at IS NOT NULL AND w.status NOT IN ('running', 'reconciling')
UNION ALL
SELECT w.id, 'waits for an event that is in the inbox' FROM outlast_workflow w
JOIN outlast_wait o ON o.workflow_id = w.id AND o.status = 'open' AND o.event_type <> '' AND o.evidence IS NULL
JOIN outlast_event e ON e.type = o.event_type AND e.key = o.key AND e.status = 'pending'
WHERE w.status IN ('waiting', 'paused')
"""


def prepare_session() -> None:
    """Commits of tests need not reach the disk; races stay what they are."""
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{connection.settings_dict["NAME"]}" SET synchronous_commit = off')
        cursor.execute("SET synchronous_commit = off")
