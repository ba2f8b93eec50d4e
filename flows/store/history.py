"""Reading what is recorded of many workflows at once, for replay: one statement a table, in one snapshot that nothing can write in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from flows.core.misuse import UsageError
from flows.store.sql import run

Rows = list[tuple[Any, ...]]


class NotAlone(UsageError):
    """A replay was asked for inside a transaction."""

    code = "REPLAY_INSIDE_TRANSACTION"

    def __init__(self) -> None:
        super().__init__("A replay reads in a read-only transaction of its own: call it outside atomic().")


@contextmanager
def snapshot(using: str) -> Iterator[None]:
    """One view of the record for several statements; the server refuses every write of this connection meanwhile.

    Raises:
        NotAlone: there is a transaction already.
    """
    if connections[using].in_atomic_block:
        raise NotAlone
    with transaction.atomic(using=using):
        run("read only", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", {}, using)
        yield


PAGE = """
SELECT id FROM outlast_workflow
WHERE id > %(after)s::uuid AND (%(flow)s::text IS NULL OR flow_name = %(flow)s::text)
  AND (NOT %(live)s::bool OR status NOT IN ('complete', 'failed', 'cancelled', 'superseded'))
ORDER BY id LIMIT %(limit)s::int
"""


def page(after: UUID, *, flow: str | None, live: bool, limit: int, using: str) -> list[UUID]:
    """The next workflows after that id: all, or those of one flow; `live`: those that have not ended."""
    params = {"after": after, "flow": flow, "live": live, "limit": limit}
    return [row[0] for row in run("page of workflows", PAGE, params, using)]


WORKFLOWS = """
SELECT id, flow_name, flow_version, fingerprint, key, input, result, release, version, status, node, outcome, epoch, intent_version,
    policy_version
FROM outlast_workflow WHERE id = ANY (%(ids)s::uuid[]) ORDER BY id
"""

LOG = """
SELECT workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version, policy_version,
    activity_seq, attempt, error_code, note, at
FROM outlast_transition WHERE workflow_id = ANY (%(ids)s::uuid[]) ORDER BY workflow_id, seq
"""

ACTIVITIES = """
SELECT workflow_id, seq, node, step, visit, status, result FROM outlast_activity WHERE workflow_id = ANY (%(ids)s::uuid[])
"""

ATTEMPTS = """
SELECT workflow_id, activity_seq, number, outcome, error_code, error_class FROM outlast_attempt
WHERE workflow_id = ANY (%(ids)s::uuid[])
"""

WAITS = """
SELECT workflow_id, id, node, visit, kind, event_type, key, on_expiry, status, evidence, result, due_since IS NOT NULL, closed_at
FROM outlast_wait WHERE workflow_id = ANY (%(ids)s::uuid[]) ORDER BY workflow_id, id
"""

DEADLINES = """
SELECT workflow_id, id, kind, name, on_expiry, wait_id, fired_at, status = 'handled' FROM outlast_timer
WHERE workflow_id = ANY (%(ids)s::uuid[]) AND status IN ('fired', 'handled') AND on_expiry <> '' ORDER BY workflow_id, id
"""

VERDICTS = """
SELECT workflow_id, version, node, activity_seq, attempt, verdict, checks, at FROM outlast_verdict
WHERE workflow_id = ANY (%(ids)s::uuid[]) ORDER BY workflow_id, id
"""

OBSERVATIONS = """
SELECT workflow_id, node, activity_seq, attempt, name, version, baseline, at FROM outlast_observation
WHERE workflow_id = ANY (%(ids)s::uuid[]) ORDER BY workflow_id, id
"""

VERIFICATIONS = """
SELECT workflow_id, node, activity_seq, attempt, candidate_node, digest, revision, passed, code, state_versions FROM outlast_verification
WHERE workflow_id = ANY (%(ids)s::uuid[]) ORDER BY workflow_id, id
"""


RELEASES = "SELECT name FROM outlast_release"


def releases(using: str) -> frozenset[str]:
    """The names of all releases: which one was current at a moment, no row says."""
    return frozenset(row[0] for row in run("history: releases", RELEASES, {}, using))


def workflows(ids: Sequence[UUID], using: str) -> Rows:
    """The workflows' own rows."""
    return run("history: workflows", WORKFLOWS, {"ids": list(ids)}, using)


def log(ids: Sequence[UUID], using: str) -> Rows:
    """Their logs, each in order."""
    return run("history: log", LOG, {"ids": list(ids)}, using)


def activities(ids: Sequence[UUID], using: str) -> Rows:
    """Their visits of activity nodes, with results."""
    return run("history: activities", ACTIVITIES, {"ids": list(ids)}, using)


def attempts(ids: Sequence[UUID], using: str) -> Rows:
    """How their attempts ended."""
    return run("history: attempts", ATTEMPTS, {"ids": list(ids)}, using)


def waits(ids: Sequence[UUID], using: str) -> Rows:
    """Their waits with evidence and results, each in the order in which they were opened."""
    return run("history: waits", WAITS, {"ids": list(ids)}, using)


def deadlines(ids: Sequence[UUID], using: str) -> Rows:
    """Their deadlines that have passed."""
    return run("history: deadlines", DEADLINES, {"ids": list(ids)}, using)


def verdicts(ids: Sequence[UUID], using: str) -> Rows:
    """What the gates of their nodes answered, each workflow's in order."""
    return run("history: verdicts", VERDICTS, {"ids": list(ids)}, using)


def observations(ids: Sequence[UUID], using: str) -> Rows:
    """What their attempts saw outside, in order."""
    return run("history: observations", OBSERVATIONS, {"ids": list(ids)}, using)


def verifications(ids: Sequence[UUID], using: str) -> Rows:
    """What their verifiers found, in order."""
    return run("history: verifications", VERIFICATIONS, {"ids": list(ids)}, using)
