"""Findings: the arrows of `flows.core.liveness`, each a guarded statement. Nobody who holds another row locks one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from flows.store.locks import NAMESPACE
from flows.store.sql import dumps, loads, run


class Found(NamedTuple):
    """What a scan saw: about what, of which run, and the facts."""

    subject: str
    workflow: UUID | None
    facts: Any


#: A live worker has been there for as long as recovery takes, and nobody has scanned since. The clock is the server's, not business time.
DUE = """
EXISTS (SELECT FROM outlast_worker WHERE status = 'alive' AND started_at <= statement_timestamp() - {seconds} * interval '1 second'
        AND lease_until > statement_timestamp())
AND NOT EXISTS (SELECT FROM outlast_scan WHERE kind = '' AND scanned_at > statement_timestamp() - {seconds} * interval '1 second')
"""

BEGIN = """
INSERT INTO outlast_scan (kind, scanned_at, seconds, found, whole, problem) VALUES ('', statement_timestamp(), 0, 0, true, '')
ON CONFLICT (kind) DO UPDATE SET scanned_at = statement_timestamp()
WHERE outlast_scan.scanned_at <= statement_timestamp() - %(seconds)s::float8 * interval '1 second'
RETURNING kind
"""


def begin(seconds: float, using: str) -> bool:
    """Take the scan that is due; False: somebody else has begun one less than so many seconds ago."""
    return bool(run("begin scan", BEGIN, {"seconds": seconds}, using))


ONE = "SELECT pg_try_advisory_xact_lock(%(number)s::bigint)"
#: One process, and enough memory that a hundred thousand rows are compared there.
BOUND = """
SELECT set_config('statement_timeout', %(bound)s, true), set_config('jit', 'off', true), set_config('work_mem', '64MB', true),
    set_config('max_parallel_workers_per_gather', '0', true)
"""


def alone(kind: str, using: str) -> bool:
    """Whether nobody else looks for this kind, until the end of the transaction."""
    name = f"{NAMESPACE}\x1fscan\x1f{kind}".encode()
    number = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)
    found: bool = run("scan alone", ONE, {"number": number}, using)[0][0]
    return found


def bound(milliseconds: int, using: str) -> None:
    """No statement of this transaction takes longer."""
    run("bound scan", BOUND, {"bound": str(milliseconds)}, using)


#: What a person dismissed was about the same thing: it stays dismissed for as long as it is there.
FIND = """
WITH found AS (
    SELECT * FROM unnest(%(subjects)s::text[], %(workflows)s::uuid[], %(facts)s::text[]) AS f(subject, workflow, facts)
)
INSERT INTO outlast_finding AS o (
    kind, subject, workflow_id, facts, status, first_seen, last_seen, times, before, tries, code, by_label, reason)
SELECT %(kind)s, f.subject, f.workflow, f.facts::jsonb, 'open', flows_now(), flows_now(), 1,
    (SELECT count(*)::int FROM outlast_finding b WHERE b.kind = %(kind)s AND b.subject = f.subject AND b.closed_at IS NOT NULL), 0, '', '', ''
FROM found f
ON CONFLICT (kind, subject) WHERE closed_at IS NULL
DO UPDATE SET times = o.times + 1, last_seen = flows_now(), facts = EXCLUDED.facts, workflow_id = EXCLUDED.workflow_id
RETURNING id, subject, times = 1, status
"""


def find(kind: str, found: Sequence[Found], using: str) -> list[tuple[int, str, bool, str]]:
    """Keep what a scan saw of a kind: (id, subject, whether it is new, status) of each."""
    if not found:
        return []
    params = {
        "kind": kind,
        "subjects": [one.subject for one in found],
        "workflows": [one.workflow for one in found],
        "facts": [dumps(one.facts) for one in found],
    }
    return [(row[0], row[1], row[2], row[3]) for row in run("find", FIND, params, using)]


GO = """
UPDATE outlast_finding
SET status = CASE status WHEN 'open' THEN 'gone' ELSE status END, closed_at = flows_now()
WHERE kind = %(kind)s AND closed_at IS NULL AND subject <> ALL (%(found)s::text[]) RETURNING id
"""


def go(kind: str, found: Sequence[str], using: str) -> int:
    """A whole scan of the kind has found these alone: the others are gone. How many."""
    return len(run("findings gone", GO, {"kind": kind, "found": list(found)}, using))


DONE = """
INSERT INTO outlast_scan (kind, scanned_at, seconds, found, whole, problem)
VALUES (%(kind)s, statement_timestamp(), %(seconds)s::float8, %(found)s::int, %(whole)s::bool, %(problem)s)
ON CONFLICT (kind) DO UPDATE SET scanned_at = EXCLUDED.scanned_at, seconds = EXCLUDED.seconds, found = EXCLUDED.found,
    whole = EXCLUDED.whole, problem = EXCLUDED.problem
"""


def done(kind: str, seconds: float, found: int, using: str, *, whole: bool = True, problem: str = "") -> None:
    """How the scan of a kind went."""
    run("scan done", DONE, {"kind": kind, "seconds": seconds, "found": found, "whole": whole, "problem": problem}, using)


class Open(NamedTuple):
    """A finding that is there, locked."""

    id: int
    kind: str
    subject: str
    workflow: UUID | None
    facts: Any
    status: str


LOCK = """
SELECT id, kind, subject, workflow_id, facts, status FROM outlast_finding
WHERE id = %(id)s::bigint AND closed_at IS NULL FOR NO KEY UPDATE SKIP LOCKED
"""


def lock(finding: int, using: str) -> Open | None:
    """Lock a finding that is there and that nobody else is at; else None."""
    rows = run("lock finding", LOCK, {"id": finding}, using)
    return Open(rows[0][0], rows[0][1], rows[0][2], rows[0][3], loads(rows[0][4]), rows[0][5]) if rows else None


#: Those that are to be mended by themselves: not those that came back, or could not be mended, too often.
WANTED = """
SELECT id FROM outlast_finding o
WHERE kind = %(kind)s AND closed_at IS NULL AND status = 'open' AND tries < %(most)s::int
  AND (before < %(most)s::int OR (SELECT count(*) FROM outlast_finding b WHERE b.kind = o.kind AND b.subject = o.subject
    AND b.status = 'repaired' AND b.closed_at > flows_now() - interval '1 day') < %(most)s::int)
  AND subject = ANY (%(found)s::text[])
ORDER BY id
"""


def wanted(kind: str, found: Sequence[str], most: int, using: str) -> list[int]:
    """Which of these are to be mended by themselves."""
    return [row[0] for row in run("findings to mend", WANTED, {"kind": kind, "found": list(found), "most": most}, using)]


CLOSE = """
UPDATE outlast_finding SET status = 'repaired', closed_at = flows_now(), code = %(code)s,
    by_id = %(by)s, by_label = %(label)s, reason = %(reason)s
WHERE id = %(id)s::bigint AND closed_at IS NULL RETURNING id
"""


def repaired(finding: int, code: str, using: str, *, by: Any = None, label: str = "", reason: str = "") -> bool:
    """It is mended."""
    params = {"id": finding, "code": code, "by": by, "label": label, "reason": reason}
    return bool(run("finding repaired", CLOSE, params, using))


TRIED = "UPDATE outlast_finding SET tries = tries + 1 WHERE id = %(id)s::bigint AND closed_at IS NULL RETURNING tries"


def tried(finding: int, using: str) -> None:
    """A repair hit nothing."""
    run("finding tried", TRIED, {"id": finding}, using)


DISMISS = """
UPDATE outlast_finding SET status = 'dismissed', by_id = %(by)s, by_label = %(label)s, reason = %(reason)s
WHERE id = %(id)s::bigint AND closed_at IS NULL AND status = 'open' RETURNING id
"""


def dismiss(finding: int, by: Any, label: str, reason: str, using: str) -> bool:
    """Nothing is to be done about it; False: it is not open."""
    return bool(run("dismiss finding", DISMISS, {"id": finding, "by": by, "label": label, "reason": reason}, using))
