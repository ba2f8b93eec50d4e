"""Erasing: the values of ended runs are replaced for ever, by one arrow a run that says so in the log.

The arrow is a row's own; the rest follows under its lock. What is append-only lets the values be written anew under one named switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from flows import registry
from flows.core.payload import ERASED, ERASED_TEXT
from flows.core.protocol import TERMINAL
from flows.store.sql import dumps, literals, run

_ENDED = literals(sorted(status.value for status in TERMINAL))
REWRITE = "SELECT set_config('outlast.rewrite', %(to)s, true)"

OF_USER = """
WITH RECURSIVE found AS (
    SELECT id, status FROM outlast_workflow WHERE user_id::text = %(user)s
    UNION SELECT w.id, w.status FROM outlast_workflow w JOIN found f ON w.parent_id = f.id)
SELECT id, status IN ({ended}) FROM found ORDER BY id
"""
OF_KEY = """
WITH RECURSIVE found AS (
    SELECT id, status FROM outlast_workflow WHERE flow_name = %(flow)s AND key = %(key)s
    UNION SELECT w.id, w.status FROM outlast_workflow w JOIN found f ON w.parent_id = f.id)
SELECT id, status IN ({ended}) FROM found ORDER BY id
"""


def of_user(user: Any, using: str) -> list[tuple[UUID, bool]]:
    """(id, whether it has ended) of the runs that this user is accountable for, and of their children."""
    return [(row[0], row[1]) for row in run("runs of user", OF_USER.format(ended=_ENDED), {"user": str(user)}, using)]


def of_key(flow: str, key: str, using: str) -> list[tuple[UUID, bool]]:
    """The same of the run with that key, and of its children."""
    return [(row[0], row[1]) for row in run("runs of key", OF_KEY.format(ended=_ENDED), {"flow": flow, "key": key}, using)]


LOCK_INTENTS = """
SELECT i.id FROM outlast_intent i WHERE i.id IN (SELECT intent_id FROM outlast_workflow WHERE id = ANY(%(ids)s::uuid[]))
ORDER BY i.id FOR NO KEY UPDATE
"""
LOCK = """
SELECT id FROM outlast_workflow WHERE id = ANY(%(ids)s::uuid[]) AND status IN ({ended}) ORDER BY id FOR NO KEY UPDATE
"""

#: `updated_at` stays: it says when the run ended, and retention goes by it.
ERASE = """
WITH moved AS (
    UPDATE outlast_workflow w
    SET version = version + 1, input = %(erased)s::jsonb, result = CASE WHEN result IS NOT NULL THEN %(erased)s::jsonb END,
        checkpoint = CASE WHEN checkpoint IS NOT NULL THEN %(erased)s::jsonb END,
        subject = CASE WHEN subject <> '' THEN %(text)s ELSE '' END
    WHERE w.id = ANY(%(ids)s::uuid[]) AND w.status IN ({ended}) AND w.input <> %(erased)s::jsonb
    RETURNING w.*
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version, policy_version,
        error_code, note, at)
    SELECT m.id, m.version, m.status, m.status, m.node, m.node, m.outcome, m.epoch, 'erase', %(by)s, m.intent_version, m.policy_version,
        m.error_code, %(note)s::jsonb, flows_now()
    FROM moved m
)
SELECT id FROM moved
"""


def lock(ids: Sequence[UUID], using: str) -> list[UUID]:
    """Lock the intents of these runs, then those of them that have ended."""
    run("lock intents", LOCK_INTENTS, {"ids": list(ids)}, using)
    return [row[0] for row in run("lock to erase", LOCK.format(ended=_ENDED), {"ids": list(ids)}, using)]


def erase(ids: Sequence[UUID], by: str, reason: str, using: str) -> list[UUID]:
    """Move these locked runs, with their row of the log; those that were not erased before."""
    params = {**_values(ids), "by": by, "note": dumps({"reason": reason} if reason else {})}
    return [row[0] for row in run("erase", ERASE.format(ended=_ENDED), params, using)]


def _values(ids: Sequence[UUID]) -> dict[str, Any]:
    return {"ids": list(ids), "erased": dumps(ERASED), "text": ERASED_TEXT}


ROWS = "UPDATE {table} t SET {sets} {source} WHERE {owner} = ANY(%(ids)s::uuid[])"
VALUE = "{column} = CASE WHEN t.{column} IS NOT NULL THEN %(erased)s::jsonb END"
TEXT = "{column} = CASE WHEN t.{column} <> '' THEN %(text)s ELSE '' END"

#: What lies in other tables, and was written for these runs: the branch of a child, its events and their deliveries, its goal (where no other
#: run works for it), the last input of a start that was put off, and the sessions that it belonged to.
ELSEWHERE = (
    (
        "UPDATE outlast_branch SET input = %(erased)s::jsonb, result = CASE WHEN result IS NOT NULL THEN %(erased)s::jsonb END"
        " WHERE workflow_id = ANY(%(ids)s::uuid[])"
    ),
    (
        "UPDATE outlast_webhook_delivery d SET body = NULL, headers = '{{}}' FROM outlast_event e"
        " WHERE e.id IN ({events}) AND d.event_id = e.event_id"
    ),
    "UPDATE outlast_event SET payload = %(erased)s::jsonb WHERE id IN ({events})",
    (
        "UPDATE outlast_intent_revision v SET goal = %(text)s, reason = CASE WHEN reason <> '' THEN %(text)s ELSE '' END WHERE v.intent_id IN"
        " ({intents})"
    ),
    "UPDATE outlast_intent i SET goal = %(text)s WHERE i.id IN ({intents})",
    "UPDATE outlast_start_key SET input = NULL WHERE workflow_id = ANY(%(ids)s::uuid[]) AND due_at IS NULL",
    "DELETE FROM outlast_session_link WHERE workflow_id = ANY(%(ids)s::uuid[])",
)
_EVENTS = """SELECT event_id FROM outlast_wait WHERE workflow_id = ANY(%(ids)s::uuid[]) AND event_id IS NOT NULL
    UNION SELECT event_id FROM outlast_wait_part WHERE workflow_id = ANY(%(ids)s::uuid[]) AND event_id IS NOT NULL
    UNION SELECT v.id FROM outlast_event v JOIN outlast_workflow w ON w.started_by = 'event:' || v.event_id AND v.status <> 'conflict'
        WHERE w.id = ANY(%(ids)s::uuid[])"""
_INTENTS = """SELECT w.intent_id FROM outlast_workflow w WHERE w.id = ANY(%(ids)s::uuid[]) AND NOT EXISTS (
        SELECT FROM outlast_workflow o WHERE o.intent_id = w.intent_id AND o.input <> %(erased)s::jsonb)"""


def rest(ids: Sequence[UUID], using: str) -> None:
    """Erase everything else of these runs, which are erased themselves. In the same transaction."""
    given = _values(ids)
    run("rewrite on", REWRITE, {"to": "on"}, using)
    for one in registry.belongings():
        if (one.values or one.texts) and one.table != "outlast_workflow":
            sets = ", ".join(
                [*(VALUE.format(column=name) for name in one.values), *(TEXT.format(column=name) for name in one.texts)]
            )
            source, owner = "", f"t.{one.column}"
            if one.through is not None:
                own, parent, their = one.through
                source, owner = f"FROM {parent} p", f"t.{own} = p.{their} AND p.{one.column}"
            run("erase rows", ROWS.format(table=one.table, sets=sets, source=source, owner=owner), given, using)
    for statement in ELSEWHERE:
        run("erase elsewhere", statement.format(events=_EVENTS, intents=_INTENTS), given, using)
    run("rewrite off", REWRITE, {"to": ""}, using)
