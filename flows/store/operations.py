"""The operation ledger: in flight before the call, settled by whoever knows first.

    fly      none, planned, failed, uncertain and to be asked for again → in_flight
                                                   under the workflow's owner; no row: no call. The statement updates the workflow's row first;
                                                   from uncertain, others may settle it: the workflow is locked, then the statement acts
    settle   in_flight, uncertain → succeeded, failed, planned, abandoned     the truth about the world: it needs no ownership
    doubt    in_flight → uncertain, due            the attempt (or the look) is over, and nobody knows
What a servicing turn does with operations that are due: `flows/store/looks.py`. Except for `fly`, the workflow must be locked: whoever writes
an effect's status, or what it pays, holds its workflow's row, so `owed` is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from flows.core.effects import UNSETTLED
from flows.store.sql import loads, run


@dataclass(frozen=True, slots=True)
class Flight:
    """What an attempt declares before it calls. The first block is the guard."""

    workflow: UUID
    version: int
    epoch: int
    intent_version: int
    worker: UUID
    seq: int

    id: str
    node: str
    name: str
    attempt: int
    request: str | None
    digest: str
    compensable: bool
    two_people: bool


#: The guard of an owner that is about to call.
OWNS = """
w.id = %(workflow)s::uuid AND w.version = %(version)s::int AND w.status = 'running' AND w.epoch = %(epoch)s::int
      AND w.intent_version = %(intent_version)s::int AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid
      AND w.active_seq = %(seq)s::int
""".strip()

#: An operation that is there already and cannot fly leaves the workflow's row alone; if it came only now, it is half a move.
FLY = f"""
WITH held AS (
    UPDATE outlast_workflow w
    SET owed = w.owed + CASE WHEN EXISTS (SELECT FROM outlast_operation x WHERE x.id = %(id)s AND x.status = 'uncertain') THEN 0 ELSE 1 END
    WHERE {OWNS}
      AND NOT EXISTS (SELECT FROM outlast_operation x WHERE x.id = %(id)s
                      AND NOT ((x.status IN ('planned', 'failed') OR x.status = 'uncertain' AND x.again)
                               AND x.request_digest = %(digest)s))
    RETURNING w.id, w.epoch, w.intent_version, w.worker_id, w.worker_pid
), flown AS (
    INSERT INTO outlast_operation AS o (
        id, workflow_id, activity_seq, node, name, kind, status, request, request_digest, attempt, epoch, intent_version,
        compensable, two_people, again, external_id, flown_by, flown_pid, flown_at, settled_by, looks, tries, lost)
    SELECT %(id)s, h.id, %(seq)s::int, %(node)s, %(name)s, 'effect', 'in_flight', %(request)s::jsonb, %(digest)s, %(attempt)s::int, h.epoch,
        h.intent_version, %(compensable)s::bool, %(two_people)s::bool, false, '', h.worker_id, h.worker_pid, flows_now(), '', 0, 0, 0
    FROM held h
    ON CONFLICT (id) DO UPDATE
    SET status = 'in_flight', attempt = EXCLUDED.attempt, epoch = EXCLUDED.epoch, intent_version = EXCLUDED.intent_version,
        flown_by = EXCLUDED.flown_by, flown_pid = EXCLUDED.flown_pid, flown_at = EXCLUDED.flown_at, error_code = NULL,
        settled_at = NULL, settled_by = '', doubt_since = NULL, due_at = NULL, tries = 0,
        lost = 0
    WHERE (o.status IN ('planned', 'failed') OR o.status = 'uncertain' AND o.again) AND o.request_digest = EXCLUDED.request_digest
    RETURNING o.id, o.again
)
SELECT f.again FROM held h LEFT JOIN flown f ON true WHERE f.id IS NOT NULL OR outlast_half_move('operation')
"""

_FLIGHT = tuple(field.name for field in fields(Flight))


def fly(flight: Flight, using: str) -> bool | None:
    """Put the operation in flight. None: the workflow is owned no longer, or the operation stands in the way (read it).

    Else call now; True: an earlier call may have happened, so a failure of this one says nothing about that. Where the operation is in
    doubt, others may settle it meanwhile: `hold` its workflow first.
    """
    rows = run("fly", FLY, {name: getattr(flight, name) for name in _FLIGHT}, using)
    return bool(rows[0][0]) if rows else None


HOLD = f"SELECT w.id FROM outlast_workflow w WHERE {OWNS} FOR NO KEY UPDATE"
_HOLD = ("workflow", "version", "epoch", "intent_version", "worker", "seq")


def hold(flight: Flight, using: str) -> bool:
    """Lock the workflow, so that nobody settles an operation of it before the next statement; False: it is owned no longer."""
    return bool(run("hold", HOLD, {name: getattr(flight, name) for name in _HOLD}, using))


@dataclass(frozen=True, slots=True)
class Row:
    """An operation as it is recorded, and where its workflow is."""

    id: str
    workflow_id: UUID
    activity_seq: int
    node: str
    name: str
    kind: str
    of_id: str | None
    commitment_id: int | None
    status: str
    request: Any
    digest: str
    external_id: str
    evidence: Any
    error_code: str | None
    attempt: int
    epoch: int
    intent_version: int
    compensable: bool
    two_people: bool
    again: bool
    looks: int
    tries: int
    lost: int
    doubt_since: datetime | None
    due_at: datetime | None
    flow_name: str
    flow_version: int
    key: str | None


READ = """
SELECT o.id, o.workflow_id, o.activity_seq, o.node, o.name, o.kind, o.of_id, o.commitment_id, o.status, o.request, o.request_digest,
    o.external_id, o.evidence, o.error_code, o.attempt, o.epoch, o.intent_version, o.compensable, o.two_people, o.again,
    o.looks, o.tries, o.lost, o.doubt_since, o.due_at,
    w.flow_name, w.flow_version, w.key
FROM outlast_operation o JOIN outlast_workflow w ON w.id = o.workflow_id
"""
BY_ID = READ + "WHERE o.id = %(id)s"
OF_WORKFLOW = READ + "WHERE o.workflow_id = %(workflow)s::uuid ORDER BY o.flown_at NULLS LAST, o.id"


def get(operation: str, using: str) -> Row | None:
    """The operation of that id."""
    rows = run("operation", BY_ID, {"id": operation}, using)
    return _row(rows[0]) if rows else None


def of_workflow(workflow: UUID, using: str) -> list[Row]:
    """All operations of a workflow, in the order in which they were begun."""
    return [_row(row) for row in run("operations of workflow", OF_WORKFLOW, {"workflow": workflow}, using)]


def _row(row: Sequence[Any]) -> Row:
    values = list(row)
    values[9], values[12] = loads(row[9]), loads(row[12])
    return Row(*values)


SETTLE = """
WITH old AS (
    SELECT id, kind, status FROM outlast_operation
    WHERE id = %(id)s AND status = ANY (%(from)s::text[])
      AND (%(looks)s::int IS NULL OR looks = %(looks)s::int) AND (%(attempt)s::int IS NULL OR attempt = %(attempt)s::int) FOR NO KEY UPDATE
), settled AS (
    UPDATE outlast_operation o
    SET status = %(status)s, evidence = coalesce(%(evidence)s::jsonb, o.evidence),
        external_id = coalesce(nullif(%(external_id)s, ''), o.external_id), error_code = %(code)s, settled_at = flows_now(),
        settled_by = %(by)s, due_at = flows_now() + %(due)s::interval,
        worker_id = NULL, worker_pid = NULL, timeout_at = NULL, looks = o.looks + 1, tries = 0,
        attempt = CASE WHEN %(due)s::interval IS NOT NULL AND %(afresh)s::bool THEN 0 ELSE o.attempt END,
        lost = CASE WHEN %(afresh)s::bool THEN 0 ELSE o.lost END, again = false
    FROM old WHERE o.id = old.id
    RETURNING o.id, o.workflow_id, o.of_id, o.commitment_id,
        CASE o.kind WHEN 'effect' THEN (old.status IN ('in_flight', 'uncertain'))::int
                    WHEN 'compensation' THEN (o.status IN ('succeeded', 'abandoned'))::int ELSE 0 END AS pays
), released AS (
    UPDATE outlast_commitment c SET status = 'released', closed_at = flows_now(), closed_by = %(by)s
    FROM settled s WHERE c.id = s.commitment_id AND c.status = 'releasing' AND %(status)s = 'succeeded'
    RETURNING c.may_defer
), paid AS (
    UPDATE outlast_workflow w SET owed = w.owed - s.pays - (SELECT count(*)::int FROM released r WHERE NOT r.may_defer)
    FROM settled s WHERE w.id = s.workflow_id
), mitigated AS (
    UPDATE outlast_operation o SET status = 'compensated' FROM settled s
    WHERE o.id = s.of_id AND o.status = 'succeeded' AND %(status)s = 'succeeded'
)
SELECT workflow_id FROM settled
"""


def settle(
    operation: str,
    *,
    status: str,
    by: str,
    evidence: str | None = None,
    external_id: str = "",
    code: str | None = None,
    looks: int | None = None,
    attempt: int | None = None,
    due: timedelta | None = None,
    afresh: bool = False,
    sources: Iterable[str] = UNSETTLED,
    using: str,
) -> bool:
    """End the doubt about an operation of a locked workflow; False: somebody else has, or (with `looks`, `attempt`) it is under way anew.

    `due`: a servicing turn looks at it again after that; `afresh`: with all its tries.
    """
    params = {
        "id": operation,
        "status": status,
        "by": by,
        "evidence": evidence,
        "external_id": external_id,
        "code": code,
        "looks": looks,
        "attempt": attempt,
        "due": due,
        "afresh": afresh,
        "from": [str(one) for one in sources],
    }
    return bool(run("settle", SETTLE, params, using))


DOUBT = """
UPDATE outlast_operation o
SET status = 'uncertain', doubt_since = flows_now(), error_code = %(code)s, tries = 0, again = false,
    worker_id = NULL, worker_pid = NULL, timeout_at = NULL,
    flown_by = CASE WHEN %(alive)s::bool AND o.status = 'in_flight' THEN o.flown_by END,
    due_at = greatest(flows_now(), CASE WHEN %(alive)s::bool AND o.status = 'in_flight' THEN (
            SELECT a.timeout_at + interval '2 seconds' FROM outlast_activity a
            WHERE a.workflow_id = o.workflow_id AND a.seq = o.activity_seq) END)
        + coalesce((SELECT g.grace FROM unnest(%(ids)s::text[], %(graces)s::interval[]) AS g(id, grace) WHERE g.id = o.id), interval '0')
WHERE o.workflow_id = %(workflow)s::uuid AND o.kind = 'effect' AND (o.status = 'in_flight' OR o.status = 'uncertain' AND o.again)
RETURNING o.id
"""


def doubt(workflow: UUID, code: str, graces: dict[str, timedelta], using: str, *, alive: bool = False) -> list[str]:
    """Make the effects of a locked workflow that are in flight, or were to be asked for again, uncertain and due (after their grace).

    `alive`: the attempt was fenced, and may still be making its call. Nobody asks before that is over:
    by its end, its worker's, or its time-out.
    """
    params = {"workflow": workflow, "code": code, "alive": alive, "ids": list(graces), "graces": list(graces.values())}
    return [row[0] for row in run("doubt", DOUBT, params, using)]


OVER = """
UPDATE outlast_operation o
SET flown_by = NULL, due_at = least(o.due_at, flows_now() + coalesce((
        SELECT g.grace FROM unnest(%(ids)s::text[], %(graces)s::interval[]) AS g(id, grace) WHERE g.id = o.id), interval '0'))
WHERE o.id = ANY (%(ids)s::text[]) AND o.status = 'uncertain' AND o.flown_by IS NOT NULL
RETURNING o.id
"""


def over(graces: dict[str, timedelta], using: str) -> bool:
    """The calls of a fenced attempt are over, and it does not know either: ask now (after their grace)."""
    return bool(run("calls over", OVER, {"ids": list(graces), "graces": list(graces.values())}, using))


AGAIN = """
UPDATE outlast_operation o
SET again = %(again)s::bool, looks = o.looks + 1, worker_id = NULL, worker_pid = NULL, timeout_at = NULL, due_at = NULL
WHERE o.workflow_id = %(workflow)s::uuid AND o.status = 'uncertain' AND o.kind = 'effect'
  AND (o.id = %(id)s AND o.looks = %(looks)s::int OR %(id)s::text IS NULL AND o.again)
RETURNING o.id
"""


def ask_again(operation: str, workflow: UUID, looks: int, using: str) -> bool:
    """Only asking for the same again can tell: let the next attempt put it in flight, in doubt as it is. False if this look was fenced."""
    params = {"id": operation, "workflow": workflow, "looks": looks, "again": True}
    return bool(run("ask again", AGAIN, params, using))


def ask_no_more(workflow: UUID, using: str) -> list[str]:
    """Nobody will ask for it again: it is a person's doubt."""
    params = {"id": None, "workflow": workflow, "looks": None, "again": False}
    return [row[0] for row in run("ask no more", AGAIN, params, using)]


OPEN = """
SELECT id FROM outlast_operation
WHERE workflow_id = %(workflow)s::uuid AND kind = 'effect' AND (status = 'in_flight' OR status = 'uncertain' AND again)
"""


def left_open(workflow: UUID, using: str) -> list[str]:
    """Effects of a workflow that only its activity can settle for now: in flight, or in doubt and to be asked for again."""
    return [row[0] for row in run("open effects", OPEN, {"workflow": workflow}, using)]


BEGUN = """
SELECT coalesce(bool_or(o.id = %(own)s AND o.status IN ('succeeded', 'compensated')), false),
    coalesce(bool_or(o.status IN ('in_flight', 'uncertain', 'succeeded', 'compensated')), false)
FROM outlast_operation o WHERE o.workflow_id = %(workflow)s::uuid AND o.activity_seq = %(seq)s::int AND o.kind = 'effect'
"""


def begun(own: str, workflow: UUID, seq: int, using: str) -> tuple[bool, bool]:
    """Whether the own effect of an activity has happened, and whether any effect of it may have."""
    row = run("effects begun", BEGUN, {"own": own, "workflow": workflow, "seq": seq}, using)[0]
    return row[0], row[1]


PLAN = """
WITH planned AS (
    INSERT INTO outlast_operation (
        id, workflow_id, activity_seq, node, name, kind, of_id, commitment_id, status, request_digest, attempt, epoch, intent_version,
        compensable, two_people, again, external_id, settled_by, looks, tries, lost, due_at)
    SELECT %(id)s, w.id, %(seq)s::int, %(node)s, %(name)s, %(kind)s, %(of)s, %(commitment)s::bigint, 'planned', '', 0, w.epoch, w.intent_version,
        false, false, false, '', '', 0, 0, 0, flows_now()
    FROM outlast_workflow w WHERE w.id = %(workflow)s::uuid
    ON CONFLICT (id) DO NOTHING RETURNING workflow_id, kind
), owing AS (
    UPDATE outlast_workflow w SET owed = w.owed + 1 FROM planned p WHERE w.id = p.workflow_id AND p.kind = 'compensation'
)
SELECT workflow_id FROM planned
"""


def plan(
    operation: str,
    *,
    workflow: UUID,
    seq: int,
    node: str,
    name: str,
    kind: str,
    of: str | None,
    commitment: int | None,
    using: str,
) -> bool:
    """Write down a compensation or a release of a locked workflow; it is due at once. False: it is there already."""
    params = {
        "id": operation,
        "workflow": workflow,
        "seq": seq,
        "node": node,
        "name": name,
        "kind": kind,
        "of": of,
        "commitment": commitment,
    }
    return bool(run("plan operation", PLAN, params, using))


ABANDON_PLANNED = """
UPDATE outlast_operation SET status = 'abandoned', settled_at = flows_now(), settled_by = 'end'
WHERE workflow_id = %(workflow)s::uuid AND kind = 'effect' AND status = 'planned'
"""


def abandon_planned(workflow: UUID, using: str) -> None:
    """Effects that did not happen, of a workflow that ends: nobody will ask for them again."""
    run("abandon planned", ABANDON_PLANNED, {"workflow": workflow}, using)
