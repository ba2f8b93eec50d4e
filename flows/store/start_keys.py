"""Start keys: starts that are put off, and which run is the newest of its key. The row comes before the intent in the lock order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from flows.store.sql import loads, run

PUT_OFF = """
INSERT INTO outlast_start_key AS k (flow, key, input, origin, first_at, due_at, calls, workflow_id)
VALUES (%(flow)s, %(key)s, %(input)s::jsonb, %(origin)s::jsonb, flows_now(), flows_now() + %(pause)s::interval, 1, %(id)s::uuid)
ON CONFLICT (flow, key) DO UPDATE
SET input = excluded.input, origin = excluded.origin, version = k.version + 1,
    first_at = CASE WHEN k.due_at IS NULL THEN flows_now() ELSE k.first_at END,
    due_at = CASE WHEN k.due_at IS NULL THEN flows_now() + %(pause)s::interval
                  ELSE least(flows_now() + %(pause)s::interval, k.first_at + %(most)s::interval) END,
    calls = CASE WHEN k.due_at IS NULL THEN 1 ELSE k.calls + 1 END,
    workflow_id = CASE WHEN k.due_at IS NULL THEN excluded.workflow_id ELSE k.workflow_id END
RETURNING workflow_id
"""


def put_off(flow: str, key: str, input: str, origin: str, new: UUID, pause: timedelta, most: timedelta, using: str) -> UUID:
    """Put a start off, or again, with the newest input; the id that its run will have."""
    params = {"flow": flow, "key": key, "input": input, "origin": origin, "id": new, "pause": pause, "most": most}
    found: UUID = run("put off start", PUT_OFF, params, using)[0][0]
    return found


#: A start that was put off is due.
DUE = "EXISTS (SELECT FROM outlast_start_key WHERE due_at IS NOT NULL AND due_at <= flows_now())"
LOCK_DUE = """
SELECT flow, key, input, origin, workflow_id, flows_now() - first_at FROM outlast_start_key
WHERE due_at IS NOT NULL AND due_at <= flows_now() AND flow = ANY (%(flows)s::text[])
ORDER BY due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
"""


@dataclass(frozen=True, slots=True)
class Due:
    """A start that is due, and locked. `age`: how long ago it was first asked for."""

    flow: str
    key: str
    input: Any
    origin: dict[str, Any]
    workflow_id: UUID
    age: timedelta


def lock_due(flows: Sequence[str], using: str) -> Due | None:
    """Lock the start that has been due longest, of these flows; None: there is none, or others have them."""
    rows = run("lock due start", LOCK_DUE, {"flows": list(flows)}, using)
    return Due(rows[0][0], rows[0][1], loads(rows[0][2]), loads(rows[0][3]), rows[0][4], rows[0][5]) if rows else None


DONE = """
UPDATE outlast_start_key
SET due_at = flows_now() + %(again)s::interval, input = CASE WHEN %(again)s::interval IS NOT NULL THEN input END, version = version + 1
WHERE flow = %(flow)s AND key = %(key)s
"""


def done(flow: str, key: str, again: timedelta | None, using: str) -> None:
    """A locked start was carried out; or with a span, it is tried again after that."""
    run("start done", DONE, {"flow": flow, "key": key, "again": again}, using)


LOCK = """
INSERT INTO outlast_start_key AS k (flow, key) VALUES (%(flow)s, %(key)s)
ON CONFLICT (flow, key) DO UPDATE SET version = k.version + 1
"""


def lock(flow: str, key: str, using: str) -> None:
    """Lock a key before the runs of it are started; it is made where there is none."""
    run("lock start key", LOCK, {"flow": flow, "key": key}, using)


NEWEST = """
UPDATE outlast_start_key SET replaces = CASE WHEN workflow_id IS NULL THEN replaces ELSE replaces || workflow_id END,
    workflow_id = %(id)s::uuid
WHERE flow = %(flow)s AND key = %(key)s AND workflow_id IS DISTINCT FROM %(id)s::uuid
"""


def newest(flow: str, key: str, workflow: UUID, using: str) -> None:
    """This run is the newest of its locked key; the one before it is still to be ended."""
    run("newest of key", NEWEST, {"flow": flow, "key": key, "id": workflow}, using)


#: A run that a newer one replaced is still to be ended.
REPLACED = "EXISTS (SELECT FROM outlast_start_key WHERE replaces <> '{}')"
OLDER = "SELECT flow, key, replaces FROM outlast_start_key WHERE replaces <> '{}' LIMIT %(limit)s::int"


def older(limit: int, using: str) -> list[tuple[str, str, list[UUID]]]:
    """(flow, key, runs) that are still to be ended."""
    return [(row[0], row[1], list(row[2])) for row in run("older of keys", OLDER, {"limit": limit}, using)]


ENDED = """
UPDATE outlast_start_key SET replaces = array_remove(replaces, %(id)s::uuid) WHERE flow = %(flow)s AND key = %(key)s
"""


def ended(flow: str, key: str, workflow: UUID, using: str) -> None:
    """That run is ended."""
    run("older ended", ENDED, {"flow": flow, "key": key, "id": workflow}, using)


PUT_OFF_UNTIL = "SELECT due_at, calls FROM outlast_start_key WHERE flow = %(flow)s AND key = %(key)s AND due_at IS NOT NULL"


def until(flow: str, key: str, using: str) -> tuple[datetime, int] | None:
    """When a start that was put off is due, and how many calls it stands for; None: none is."""
    rows = run("put off until", PUT_OFF_UNTIL, {"flow": flow, "key": key}, using)
    return (rows[0][0], rows[0][1]) if rows else None
