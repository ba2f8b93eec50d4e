"""The one lock order, and the locks that are taken before acting in a new statement.

    webhook delivery → schedule, occurrence → start key → channels (advisory: event type + key), by number → intent → workflow
      → wait, part, timer → activity → operation, commitment, approval request → fan → branch → event, stream → limit → slot → dependency
      → envelope → budget

A budget comes last because an intent's ledger is the one row that workflows which know nothing of each other share; of several, the workflow's
own first. What needs a workflow's budget and moves the workflow does the move first. A competence envelope, likewise shared, comes just
before it; the row of a current release, and the name of a policy that is published, before everything else.

Whoever needs two of them takes them from left to right. Several rows of one kind are taken in id order, or with SKIP LOCKED. Nobody who holds a
workflow locks a relative of it. Two exceptions, neither of which waits: what lets waiting runs in holds a limit and takes workflows with SKIP
LOCKED only, and what joins the branches of a fan takes their parent so. An event is inserted under its channel before the workflows are locked:
nobody else locks it without its channel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from flows.store.sql import run

#: Namespace of our advisory locks ("outl" as a number), so that they do not meet a host application's.
NAMESPACE = 0x6F75746C

CHANNEL = "SELECT pg_advisory_xact_lock(%(key)s::bigint)"


def channel(event_type: str, key: str, using: str) -> None:
    """Serialise arrivals and waits of one channel until the end of the transaction."""
    run("lock channel", CHANNEL, {"key": channel_number(event_type, key)}, using)


CHANNELS = "SELECT pg_advisory_xact_lock(n) FROM unnest(%(keys)s::bigint[]) AS n"


def channels(named: Iterable[tuple[str, str]], using: str) -> None:
    """The same for several channels, in the order of their numbers; for none it is nothing."""
    wanted = set(named)
    if len(wanted) == 1:
        channel(*wanted.pop(), using)
    elif wanted:
        numbers = sorted({channel_number(event_type, key) for event_type, key in wanted})
        run("lock channels", CHANNELS, {"keys": numbers}, using)


def channel_number(event_type: str, key: str) -> int:
    """The advisory lock number of a channel; two channels may share one, which only makes them wait for each other."""
    name = f"{NAMESPACE}\x1f{event_type}\x1f{key}".encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)


INTENT = "SELECT version, status FROM outlast_intent WHERE id = %(id)s::uuid FOR NO KEY UPDATE"
INTENT_SHARED = "SELECT version, status FROM outlast_intent WHERE id = %(id)s::uuid FOR SHARE"


def intent(intent_id: UUID, using: str, *, shared: bool = False) -> tuple[int, str] | None:
    """Lock an intent; (version, status), or None if there is none."""
    rows = run("lock intent", INTENT_SHARED if shared else INTENT, {"id": intent_id}, using)
    return (rows[0][0], rows[0][1]) if rows else None


WORKFLOWS = "SELECT id FROM outlast_workflow WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR NO KEY UPDATE"


def workflows(ids: Sequence[Any], using: str) -> list[UUID]:
    """Lock workflows in id order; the ids that exist."""
    return [row[0] for row in run("lock workflows", WORKFLOWS, {"ids": list(ids)}, using)]


AS_SEEN = """
SELECT id FROM outlast_workflow
WHERE id = %(id)s::uuid AND version = %(version)s::int AND wake_seq = %(wake_seq)s::int FOR NO KEY UPDATE
"""


def workflow_as_seen(workflow_id: UUID, version: int, wake_seq: int, using: str) -> bool:
    """Lock a workflow if nobody has moved or told it anything since it was read."""
    params = {"id": workflow_id, "version": version, "wake_seq": wake_seq}
    return bool(run("lock workflow as seen", AS_SEEN, params, using))


WORKFLOWS_FREE = "SELECT id FROM outlast_workflow WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED"


def free_workflows(ids: Sequence[Any], using: str) -> list[UUID]:
    """Lock those workflows that nobody holds; a caller's long transaction blocks no sweep."""
    return [row[0] for row in run("lock free workflows", WORKFLOWS_FREE, {"ids": list(ids)}, using)]
