"""Looks: a servicing turn takes operations that are due, one owner each, fenced by the number of the look. Claim, commit, work, commit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from flows.store.sql import run

LOOK = """
WITH offered AS (
    SELECT * FROM unnest(%(flows)s::text[], %(versions)s::int[]) AS o(flow_name, flow_version)
)
UPDATE outlast_operation o
SET worker_id = %(worker)s::uuid, worker_pid = %(pid)s::int, flown_by = NULL, looks = o.looks + 1, tries = o.tries + 1,
    status = CASE WHEN o.status IN ('planned', 'failed') THEN 'in_flight' ELSE o.status END,
    flown_at = CASE WHEN o.status IN ('planned', 'failed') THEN flows_now() ELSE o.flown_at END,
    attempt = o.attempt + CASE WHEN o.status IN ('planned', 'failed') THEN 1 ELSE 0 END,
    timeout_at = statement_timestamp() + interval '1 minute'
WHERE o.id = ANY (ARRAY (
        SELECT d.id FROM outlast_operation d JOIN outlast_workflow w ON w.id = d.workflow_id
        WHERE d.due_at IS NOT NULL AND d.worker_id IS NULL AND d.due_at <= flows_now()
          AND (w.flow_name, w.flow_version) IN (SELECT flow_name, flow_version FROM offered)
        ORDER BY d.due_at LIMIT %(limit)s::int FOR NO KEY UPDATE OF d SKIP LOCKED))
  AND EXISTS (SELECT FROM outlast_worker k
              WHERE k.id = %(worker)s::uuid AND k.status = 'alive' AND k.lease_until > statement_timestamp())
RETURNING o.id, o.looks
"""


def look(worker: UUID, pid: int, flows: Sequence[str], versions: Sequence[int], limit: int, using: str) -> list[tuple[str, int]]:
    """Take up to `limit` operations that are due, oldest first, of definitions that this worker offers; (operation, number of the look)."""
    params = {
        "worker": worker,
        "pid": pid,
        "flows": list(flows),
        "versions": list(versions),
        "limit": limit,
    }
    return [(row[0], row[1]) for row in run("look", LOOK, params, using)]


MAY_TAKE = """
UPDATE outlast_operation SET timeout_at = statement_timestamp() + %(seconds)s::float8 * interval '1 second'
WHERE id = %(id)s AND looks = %(looks)s::int AND worker_id IS NOT NULL RETURNING id
"""


def may_take(operation: str, looks: int, seconds: float, using: str) -> bool:
    """Say how long the call or the question may take; False if this look was fenced."""
    return bool(run("look may take", MAY_TAKE, {"id": operation, "looks": looks, "seconds": seconds}, using))


LATER = """
UPDATE outlast_operation o
SET worker_id = NULL, worker_pid = NULL, timeout_at = NULL, error_code = %(code)s, due_at = flows_now() + %(delay)s::interval,
    status = coalesce(%(status)s, o.status),
    doubt_since = CASE WHEN %(status)s = 'uncertain' THEN flows_now() ELSE o.doubt_since END,
    tries = CASE WHEN %(status)s = 'uncertain' THEN 0 ELSE o.tries END
WHERE o.id = %(id)s AND o.looks = %(looks)s::int AND o.status IN ('in_flight', 'uncertain')
RETURNING o.id
"""


def later(operation: str, looks: int, *, delay: timedelta | None, code: str, status: str | None, using: str) -> bool:
    """Look again after `delay` (None: only a person can settle it), in another `status` if one is given; False if this look was fenced.

    The workflow must be locked.
    """
    params = {"id": operation, "looks": looks, "delay": delay, "code": code, "status": status}
    return bool(run("look later", LATER, params, using))


#: A look that went down with its worker had no answer: it is counted apart. A call that was under way may have happened.
#: Who looked may be frozen: the number of the look fences what it says afterwards.
PUT_BACK = """
UPDATE outlast_operation o
SET worker_id = NULL, worker_pid = NULL, timeout_at = NULL, due_at = flows_now(), looks = o.looks + 1,
    doubt_since = CASE WHEN o.status = 'in_flight' THEN flows_now() ELSE o.doubt_since END,
    tries = CASE WHEN o.status = 'in_flight' THEN 0 ELSE o.tries - 1 END, lost = o.lost + 1,
    attempt = o.attempt - CASE WHEN o.status = 'in_flight' THEN 1 ELSE 0 END,
    status = CASE WHEN o.status = 'in_flight' THEN 'uncertain' ELSE o.status END
WHERE o.worker_id IS NOT NULL AND o.id = ANY (ARRAY (
        SELECT d.id FROM outlast_operation d LEFT JOIN outlast_worker k ON k.id = d.worker_id
        WHERE d.worker_id IS NOT NULL AND (
            d.timeout_at + %(grace)s::float8 * interval '1 second' <= statement_timestamp()
            OR k.id IS NULL OR k.status <> 'alive' OR (d.worker_id = %(worker)s::uuid AND d.worker_pid = ANY (%(pids)s::int[])))
        ORDER BY d.id FOR NO KEY UPDATE OF d SKIP LOCKED))
RETURNING o.id
"""


def put_back(grace: float, using: str, *, worker: UUID | None = None, pids: Sequence[int] = ()) -> list[str]:
    """Make looks due again whose owner is gone (or takes too long, or is one of these children); those that held a call are in doubt."""
    params = {"grace": grace, "worker": worker, "pids": list(pids)}
    return [row[0] for row in run("put back looks", PUT_BACK, params, using)]


CALLER_GONE = """
SELECT o.id FROM outlast_operation o
WHERE o.status = 'uncertain' AND o.due_at IS NOT NULL AND o.worker_id IS NULL AND o.flown_by IS NOT NULL AND (
    NOT EXISTS (SELECT FROM outlast_worker k WHERE k.id = o.flown_by AND k.status = 'alive')
    OR o.flown_by = %(worker)s::uuid AND o.flown_pid = ANY (%(pids)s::int[]))
ORDER BY o.id FOR NO KEY UPDATE OF o SKIP LOCKED
"""


def caller_gone(using: str, *, worker: UUID | None = None, pids: Sequence[int] = ()) -> list[str]:
    """Lock what waits for the end of a call whose process is gone (or is one of these children): its calls are over."""
    return [row[0] for row in run("caller gone", CALLER_GONE, {"worker": worker, "pids": list(pids)}, using)]


AGAIN = """
UPDATE outlast_operation SET due_at = flows_now(), attempt = 0, tries = 0, lost = 0, looks = looks + 1
WHERE id = %(id)s AND status = 'failed' AND kind <> 'effect' AND worker_id IS NULL RETURNING id
"""


def again(operation: str, using: str) -> bool:
    """Have a compensation or a release called once more, with all its tries, though it failed for certain."""
    return bool(run("look again", AGAIN, {"id": operation}, using))


ASK_AGAIN = """
UPDATE outlast_operation SET due_at = flows_now(), tries = 0, lost = 0, looks = looks + 1, error_code = 'OUTCOME_UNKNOWN'
WHERE id = %(id)s AND looks = %(looks)s::int AND status = 'uncertain' AND NOT again AND due_at IS NULL AND worker_id IS NULL
RETURNING id
"""


def ask_again(operation: str, looks: int, using: str) -> bool:
    """Have the provider asked anew, with all its tries, about an operation in doubt that waits for a person. The workflow must be locked."""
    return bool(run("question again", ASK_AGAIN, {"id": operation, "looks": looks}, using))


#: What failed leads to an end only through a call: here it is the person's. A worker that is about to take it is waited for.
BY_HAND = """
UPDATE outlast_operation SET status = 'in_flight'
WHERE id = %(id)s AND looks = %(looks)s::int AND status = 'failed' AND kind <> 'effect' AND worker_id IS NULL RETURNING id
"""


def by_hand(operation: str, looks: int, using: str) -> bool:
    """A person has done what a compensation or a release failed to do: in flight, to be settled in the same transaction.

    False if a worker has taken it. The workflow must be locked.
    """
    return bool(run("done by hand", BY_HAND, {"id": operation, "looks": looks}, using))
