"""Which runs may be deleted, and their deletion: locked, looked at anew, and then taken out table by table under the log's named switch.

What keeps an ended run: it is not old enough; a run of its family (parent, ancestor, child, the same chain) that is live, or a child whose row
is still there; something of it that is not finished (`Belonging.unfinished`: a commitment, an effect in doubt, an open request, a reservation);
a notice that is owed; a schedule or a newer run that still has to look at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from flows import registry
from flows.core.belonging import Belonging
from flows.core.protocol import LIVE, TERMINAL
from flows.core.retention import Retention
from flows.store.sql import literals, loads, run

_LIVE = literals(sorted(status.value for status in LIVE))
_ENDED = literals(sorted(status.value for status in TERMINAL))

#: Of the ended run `w`: nobody needs it any more.
_FREE = f"""
    w.slots = 0
    AND NOT EXISTS (SELECT FROM outlast_workflow r WHERE r.parent_id = w.id)
    AND NOT EXISTS (SELECT FROM outlast_workflow r WHERE r.id = w.parent_id AND r.status IN ({_LIVE}))
    AND NOT EXISTS (SELECT FROM outlast_workflow r WHERE r.id = ANY(w.ledgers) AND r.status IN ({_LIVE}))
    AND NOT EXISTS (SELECT FROM outlast_workflow r WHERE r.ledgers @> ARRAY[w.id] AND r.status IN ({_LIVE}))
    AND NOT EXISTS (SELECT FROM outlast_workflow r WHERE r.chain = coalesce(w.chain, w.id) AND r.status IN ({_LIVE}))
    AND NOT EXISTS (SELECT FROM outlast_occurrence o WHERE o.status = 'started' AND o.workflow_id = w.id)
    AND NOT EXISTS (SELECT FROM outlast_notice n WHERE n.workflow_id = w.id AND n.sent_at IS NULL AND n.gave_up_at IS NULL)
    AND NOT EXISTS (SELECT FROM outlast_start_key k WHERE k.replaces <> '{{}}' AND w.id = ANY(k.replaces))
"""

#: Old enough, by the days of its flow.
_OLD = """
    w.updated_at <= flows_now() - interval '1 day' * (
        SELECT CASE WHEN f.name IS NULL THEN %(days)s::float8 ELSE f.days END
        FROM (SELECT) AS one LEFT JOIN unnest(%(names)s::text[], %(spans)s::float8[]) AS f(name, days) ON f.name = w.flow_name)
"""


@lru_cache(maxsize=4)
def _completed(belongings: tuple[Belonging, ...]) -> str:
    return f"{_FREE} AND {finished(belongings)}"


def finished(belongings: tuple[Belonging, ...]) -> str:
    """The SQL condition that nothing of the run `w` is unfinished."""
    kept = [one for one in belongings if one.unfinished]
    return " AND ".join(
        f"NOT EXISTS (SELECT FROM {one.table} t WHERE t.{one.column} = w.id AND ({one.unfinished}))" for one in kept
    )


def _free() -> str:
    return _completed(registry.belongings())


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended. `old`: long enough ago. `free`: nobody needs it any more (looked at only where it is old)."""

    id: UUID
    flow: str
    created_at: datetime
    old: bool
    free: bool


SEEN = """
SELECT w.id, w.flow_name, w.created_at, w.old, w.old AND {free} FROM (
    SELECT w.*, coalesce({old}, false) AS old FROM outlast_workflow w
    WHERE w.status IN ({ended}) AND w.created_at <= flows_now() - %(least)s::float8 * interval '1 day'
      AND (w.created_at, w.id) > (coalesce(%(after_at)s::timestamptz, '-infinity'),
                                  coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000'))
    ORDER BY w.created_at, w.id LIMIT %(limit)s::int) AS w
ORDER BY w.created_at, w.id
"""


def seen(rules: Retention, after: tuple[datetime, UUID] | None, limit: int, using: str) -> list[Ended]:
    """The next so many ended runs after that place, in the order in which they began."""
    statement = SEEN.format(free=_free(), old=_OLD, ended=_ENDED)
    params = {
        **_days(rules),
        "least": rules.least,
        "after_at": after[0] if after else None,
        "after_id": after[1] if after else None,
        "limit": limit,
    }
    return [Ended(*row) for row in run("ended runs", statement, params, using)]


def _days(rules: Retention) -> dict[str, Any]:
    return {"days": rules.days, "names": list(rules.flows), "spans": list(rules.flows.values())}


#: Whole, for they are deleted: a child that is started meanwhile refers to its parent, and waits here.
LOCK = f"""
SELECT id FROM outlast_workflow WHERE id = ANY(%(ids)s::uuid[]) AND status IN ({_ENDED}) ORDER BY id FOR UPDATE SKIP LOCKED
"""
LOCK_ROWS = "SELECT FROM {table} t WHERE t.{column} = ANY(%(ids)s::uuid[]) ORDER BY {order} FOR UPDATE"
STILL = "SELECT w.id FROM outlast_workflow w WHERE w.id = ANY(%(ids)s::uuid[]) AND {old} AND {free}"


def lock(ids: Sequence[UUID], rules: Retention, using: str) -> list[UUID]:
    """Lock those runs that nobody else holds; those of them that may go, looked at anew under the locks."""
    held = [row[0] for row in run("lock ended", LOCK, {"ids": list(ids)}, using)]
    if not held:
        return []
    for one in registry.belongings():
        if one.locked:
            run(
                "lock rows of ended",
                LOCK_ROWS.format(table=one.table, column=one.column, order=one.ordered),
                {"ids": held},
                using,
            )
    statement = STILL.format(old=_OLD, free=_free())
    return [row[0] for row in run("may go", statement, {"ids": held, **_days(rules)}, using)]


ROWS = "SELECT {owner}, to_jsonb(t) FROM {source} WHERE {owner} = ANY(%(ids)s::uuid[]) ORDER BY {owner}, {order}"


def records(ids: Sequence[UUID], using: str) -> dict[UUID, dict[str, list[Any]]]:
    """All that is on record of these runs: run → table → rows as they are stored (what is sealed stays sealed)."""
    found: dict[UUID, dict[str, list[Any]]] = {one: {} for one in ids}
    for one in registry.belongings():
        statement = ROWS.format(owner=_owner(one), source=_joined(one), order=one.ordered)
        for owner, row in run("record of ended", statement, {"ids": list(ids)}, using):
            found[owner].setdefault(one.table, []).append(loads(row))
    return found


def _owner(one: Belonging) -> str:
    return f"{'p' if one.through else 't'}.{one.column}"


def _joined(one: Belonging) -> str:
    if one.through is None:
        return f"{one.table} t"
    own, table, column = one.through
    return f"{table} p JOIN {one.table} t ON t.{own} = p.{column}"


SWITCH = "SELECT set_config('outlast.retention', %(to)s, true)"
KEYS = """
INSERT INTO outlast_key (flow, key, input_digest, workflow_id, intent_id, status, outcome, ended_at, deleted_at)
SELECT flow_name, key, input_digest, id, intent_id, status, outcome, updated_at, flows_now()
FROM outlast_workflow WHERE id = ANY(%(ids)s::uuid[]) AND key IS NOT NULL
"""
DELETE = "DELETE FROM {table} t WHERE t.{column} = ANY(%(ids)s::uuid[])"
DELETE_HANGING = "DELETE FROM {table} t USING {parent} p WHERE t.{own} = p.{their} AND p.{column} = ANY(%(ids)s::uuid[])"
INTENTS = "SELECT DISTINCT intent_id FROM outlast_workflow WHERE id = ANY(%(ids)s::uuid[])"

#: Nobody holds them now, and who starts a run under one of them meanwhile waits. Where another one holds it, it stays.
LOCK_INTENTS = "SELECT id FROM outlast_intent WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED"
LEFT_INTENTS = """
SELECT i.id FROM outlast_intent i
WHERE i.id = ANY(%(ids)s::uuid[]) AND NOT EXISTS (SELECT FROM outlast_workflow w WHERE w.intent_id = i.id)
"""
DELETE_INTENTS = (
    "DELETE FROM outlast_budget_entry e USING outlast_budget b WHERE e.budget_id = b.id AND b.intent_id = ANY(%(ids)s::uuid[])",
    "DELETE FROM outlast_budget WHERE intent_id = ANY(%(ids)s::uuid[])",
    "DELETE FROM outlast_intent_revision WHERE intent_id = ANY(%(ids)s::uuid[])",
    "DELETE FROM outlast_intent WHERE id = ANY(%(ids)s::uuid[])",
)
START_KEYS = """
DELETE FROM outlast_start_key k USING (
    SELECT flow, key FROM outlast_start_key WHERE workflow_id = ANY(%(ids)s::uuid[]) AND due_at IS NULL AND replaces = '{}'
    FOR UPDATE SKIP LOCKED) AS old
WHERE k.flow = old.flow AND k.key = old.key
"""


def delete(ids: Sequence[UUID], using: str) -> None:
    """Delete these locked runs and all that belongs to them; their keys stay. In the caller's transaction."""
    given = {"ids": list(ids)}
    intents = [row[0] for row in run("intents of ended", INTENTS, given, using)]
    run("retention on", SWITCH, {"to": "on"}, using)
    run("keep keys", KEYS, given, using)
    run("delete start keys", START_KEYS, given, using)
    for one in registry.belongings():
        if not one.deleted:
            continue
        if one.through is None:
            run("delete rows", DELETE.format(table=one.table, column=one.column), given, using)
        else:
            own, parent, their = one.through
            statement = DELETE_HANGING.format(table=one.table, parent=parent, own=own, their=their, column=one.column)
            run("delete rows", statement, given, using)
    free = [row[0] for row in run("lock intents of ended", LOCK_INTENTS, {"ids": intents}, using)]
    left = [row[0] for row in run("intents left", LEFT_INTENTS, {"ids": free}, using)]
    if left:
        for statement in DELETE_INTENTS:
            run("delete intents", statement, {"ids": left}, using)
    run("retention off", SWITCH, {"to": ""}, using)
