"""What the context of a decision is made of and is not in the hands of the attempt already: one read, in one snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.store.sql import loads, run

#: So many candidates of the node, the newest ones.
EARLIER = 5

READ = f"""
SELECT i.status, i.version,
    coalesce((SELECT r.goal FROM outlast_intent_revision r WHERE r.intent_id = i.id AND r.version = w.intent_version), i.goal),
    (SELECT p.body FROM outlast_policy p WHERE p.name = %(policy)s AND p.version = %(policy_version)s::int),
    w.checkpoint,
    (SELECT a.notes FROM outlast_activity a WHERE a.workflow_id = w.id AND a.seq = %(seq)s::int),
    (SELECT json_agg(json_build_array(c.name, c.kind, c.status, c.reference,
            to_char(c.deadline_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) ORDER BY c.id)
     FROM outlast_commitment c WHERE c.workflow_id = w.id AND c.status IN ('planned', 'active', 'breached', 'releasing')),
    (SELECT json_agg(json_build_array(x.name, x.version) ORDER BY x.name) FROM (
        SELECT DISTINCT ON (o.name) o.name, o.version FROM outlast_observation o
        WHERE o.workflow_id = w.id ORDER BY o.name, o.id DESC) x),
    (SELECT json_agg(json_build_array(x.revision, x.choice, x.digest, x.refused)) FROM (
        SELECT c.revision, c.choice, c.digest, c.refused FROM outlast_candidate c
        WHERE c.workflow_id = w.id AND c.node = %(node)s ORDER BY c.activity_seq DESC, c.attempt DESC LIMIT {EARLIER}) x),
    (SELECT json_agg(x.node) FROM (
        SELECT a.node FROM outlast_activity a WHERE a.workflow_id = w.id AND a.status = 'done'
        GROUP BY a.node ORDER BY max(a.seq) DESC) x),
    (SELECT json_agg(x.node) FROM (
        SELECT o.node FROM outlast_wait o WHERE o.workflow_id = w.id AND o.result IS NOT NULL
        GROUP BY o.node ORDER BY max(o.id) DESC) x)
FROM outlast_workflow w JOIN outlast_intent i ON i.id = w.intent_id
WHERE w.id = %(id)s::uuid
"""


@dataclass(frozen=True, slots=True)
class Record:
    """Durable state beside input and results.

    `goal`: of the version that the workflow works for. `commitments`: (name, kind, status, reference, deadline) of what is owed.
    `observations`: (name, newest version). `earlier`: (revision, choice, digest, refused) of the node's candidates, newest first.
    `done`, `answered`: nodes with a result, the newest first.
    """

    intent_status: str
    intent_version: int
    goal: str
    policy: Any
    checkpoint: Any
    notes: Any
    commitments: list[tuple[str, str, str, str, str | None]]
    observations: list[tuple[str, str]]
    earlier: list[tuple[int, str, str, str]]
    done: list[str]
    answered: list[str]


def read(workflow_id: UUID, seq: int, node: str, policy: str, policy_version: int, using: str) -> Record:
    """The record, as of now."""
    params = {"id": workflow_id, "seq": seq, "node": node, "policy": policy, "policy_version": policy_version}
    row = run("context", READ, params, using)[0]
    return Record(*row[:3], *(loads(value) for value in row[3:6]), *(_rows(value) for value in row[6:]))


def _rows(value: Any) -> list[Any]:
    found = loads(value) or []
    return [tuple(one) if isinstance(one, list) else one for one in found]
