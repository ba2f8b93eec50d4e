"""Where the records of deleted runs are (`outlast_archive`): written in the transaction that deletes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from flows.store.sql import loads, run

_OF = """
INSERT INTO outlast_archive (id, flow, key, user_key, parent_id, status, ended_at, archived_at, digest, file, record)
SELECT w.id, w.flow_name, w.key, coalesce(w.user_id::text, ''), w.parent_id, w.status, w.updated_at, flows_now(), g.digest, {file}, {record}
FROM unnest({given}) AS g({names}) JOIN outlast_workflow w USING (id)
"""
POINT = _OF.format(file="%(file)s", record="NULL", given="%(ids)s::uuid[], %(digests)s::text[]", names="id, digest")
KEEP = _OF.format(
    file="''",
    record="g.record::jsonb",
    given="%(ids)s::uuid[], %(digests)s::text[], %(records)s::text[]",
    names="id, digest, record",
)


def point(runs: Sequence[tuple[UUID, str]], file: str, using: str) -> None:
    """These runs, (id, digest), are in that file."""
    params = {"ids": [one for one, _ in runs], "digests": [digest for _, digest in runs], "file": file}
    run("point to archive", POINT, params, using)


def keep(runs: Sequence[tuple[UUID, str, str]], using: str) -> None:
    """Keep these runs: (id, digest, record)."""
    ids, digests, records = zip(*runs, strict=True)
    run("keep archive", KEEP, {"ids": list(ids), "digests": list(digests), "records": list(records)}, using)


FIND = """
SELECT id, flow, key, status, ended_at, archived_at, digest, file, record FROM outlast_archive
WHERE id = %(id)s::uuid OR flow = %(flow)s AND key = %(key)s
"""


def find(*, workflow: UUID | None = None, flow: str | None = None, key: str | None = None, using: str) -> tuple[Any, ...] | None:
    """(id, flow, key, status, ended, archived, digest, file, record) of a deleted run, by its id or its key; None: it is not archived."""
    rows = run("find archived", FIND, {"id": workflow, "flow": flow, "key": key}, using)
    return (*rows[0][:8], loads(rows[0][8])) if rows else None


NEWEST = """
SELECT id, flow, key, status, ended_at, archived_at, file FROM outlast_archive
WHERE %(flow)s::text IS NULL OR flow = %(flow)s ORDER BY archived_at DESC, id LIMIT %(limit)s::int
"""


def newest(flow: str | None, limit: int, using: str) -> list[tuple[Any, ...]]:
    """(id, flow, key, status, ended, archived, file) of what was archived last."""
    return run("archived", NEWEST, {"flow": flow, "limit": limit}, using)


DELETED = "SELECT workflow_id, deleted_at FROM outlast_key WHERE flow = %(flow)s AND key = %(key)s"


def deleted(flow: str, key: str, using: str) -> tuple[UUID, Any] | None:
    """(id, when) of the deleted run with that key; None: there is none."""
    rows = run("deleted key", DELETED, {"flow": flow, "key": key}, using)
    return (rows[0][0], rows[0][1]) if rows else None


REPLACE = """
UPDATE outlast_archive SET record = %(record)s::jsonb, digest = %(digest)s WHERE id = %(id)s::uuid AND digest = %(was)s RETURNING id
"""


def replace(workflow: UUID, was: str, digest: str, record: str, using: str) -> bool:
    """Another record in place of the one with that digest; False: it is not that one any more."""
    params = {"id": workflow, "was": was, "digest": digest, "record": record}
    return bool(run("replace archived", REPLACE, params, using))
