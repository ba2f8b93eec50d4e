"""Erasing: the values of ended runs are replaced for ever, by one arrow a run that says so in the log.

The arrow is a row's own; the rest follows under its lock. What is append-only lets the values be written anew under one named switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows import registry
from flows.core.payload import ERASED, ERASED_TEXT
from flows.core.protocol import TERMINAL
from flows.store.retention import finished
from flows.store.sql import dumps, literals, run

_ENDED = literals(sorted(status.value for status in TERMINAL))
REWRITE = "SELECT set_config('outlast.rewrite', %(to)s, true)"

#: Runs and their children, whether their record is still there or archived.
FAMILY = """
WITH RECURSIVE found AS (
    (SELECT id FROM outlast_workflow WHERE {whose} UNION SELECT id FROM outlast_archive WHERE {archived})
    UNION SELECT c.id FROM found f CROSS JOIN LATERAL (
        SELECT w.id FROM outlast_workflow w WHERE w.parent_id = f.id
        UNION ALL SELECT a.id FROM outlast_archive a WHERE a.parent_id = f.id) c)
"""
OF = FAMILY + "SELECT w.id, {over} FROM found f JOIN outlast_workflow w USING (id) ORDER BY w.id"
ARCHIVED = FAMILY + "SELECT a.id, a.file FROM found f JOIN outlast_archive a USING (id) ORDER BY a.id"
OF_USER = {"whose": "user_id = %(user)s", "archived": "user_key = %(user)s::text AND user_key <> ''"}
OF_KEY = {"whose": "flow_name = %(flow)s AND key = %(key)s", "archived": "flow = %(flow)s AND key = %(key)s"}


def _over() -> str:
    """Of the run `w`: it has ended, nothing of it is owed, in doubt or asked, and no live parent reads its result."""
    parent = f"NOT EXISTS (SELECT FROM outlast_workflow r WHERE r.id = w.parent_id AND r.status NOT IN ({_ENDED}))"
    return f"(w.status IN ({_ENDED}) AND {parent} AND {finished(registry.belongings())})"


@dataclass(frozen=True, slots=True)
class Found:
    """Runs of somebody, with their children.

    `runs`: (id, whether it has ended and nobody needs its values). `archived`: (id, file); no file: its record is in the table.
    """

    runs: list[tuple[UUID, bool]]
    archived: list[tuple[UUID, str]]


def of_user(user: Any, using: str) -> Found:
    """The runs that this user is accountable for, and their children."""
    return _found(OF_USER, {"user": user}, using)


def of_key(flow: str, key: str, using: str) -> Found:
    """The run with that key, and its children."""
    return _found(OF_KEY, {"flow": flow, "key": key}, using)


def _found(whose: Mapping[str, str], given: Mapping[str, Any], using: str) -> Found:
    runs = run("runs to erase", OF.format(**whose, over=_over()), given, using)
    archived = run("archived to erase", ARCHIVED.format(**whose), given, using)
    return Found([(row[0], row[1]) for row in runs], [(row[0], row[1]) for row in archived])


LOCK_INTENTS = """
SELECT i.id FROM outlast_intent i WHERE i.id IN (SELECT intent_id FROM outlast_workflow WHERE id = ANY(%(ids)s::uuid[]))
ORDER BY i.id FOR NO KEY UPDATE
"""
LOCK = """
SELECT id FROM outlast_workflow WHERE id = ANY(%(ids)s::uuid[]) AND status IN ({ended}) ORDER BY id FOR NO KEY UPDATE
"""
#: Looked at in a statement of its own: its snapshot is of after the lock.
STILL = "SELECT w.id FROM outlast_workflow w WHERE w.id = ANY(%(ids)s::uuid[]) AND {over} ORDER BY w.id"

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
    """Lock the intents of these runs, then those of them that have ended and whose values nobody needs."""
    run("lock intents", LOCK_INTENTS, {"ids": list(ids)}, using)
    held = [row[0] for row in run("lock to erase", LOCK.format(ended=_ENDED), {"ids": list(ids)}, using)]
    return [row[0] for row in run("look again", STILL.format(over=_over()), {"ids": held}, using)]


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
        " WHERE e.id IN ({events}) AND d.event_id = e.event_id AND d.event_id <> ''"
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
    UNION SELECT v.id FROM outlast_workflow w JOIN outlast_event v ON v.event_id = substr(w.started_by, 7) AND v.status <> 'conflict'
        WHERE w.id = ANY(%(ids)s::uuid[]) AND starts_with(w.started_by, 'event:')"""
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
