"""The artifact of one attempt of a Decision, written in the transaction of the arrow that ends the attempt; append-only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.store.sql import run


@dataclass(frozen=True, slots=True)
class Artifact:
    """What was proposed, and under what; `usage` is encoded JSON. `refused`: the code for which it was not accepted."""

    workflow: UUID
    node: str
    seq: int
    attempt: int
    revision: int
    choice: str
    digest: str
    refused: str
    release: str
    model: str
    prompt_hash: str
    context_hash: str
    output_hash: str
    usage: str
    evidence_digest: str


ARTIFACT = """
INSERT INTO outlast_candidate (
    workflow_id, node, activity_seq, attempt, revision, choice, digest, refused, release, model, prompt_hash, context_hash, output_hash,
    usage, evidence_digest, at)
VALUES (%(workflow)s::uuid, %(node)s, %(seq)s::int, %(attempt)s::int, %(revision)s::int, %(choice)s, %(digest)s, %(refused)s,
    %(release)s, %(model)s, %(prompt_hash)s, %(context_hash)s, %(output_hash)s, %(usage)s::jsonb, %(evidence_digest)s, flows_now())
"""


def record(artifact: Artifact, using: str) -> None:
    """Record it; the workflow is locked. A second row of one attempt cannot be."""
    params: dict[str, Any] = {name: getattr(artifact, name) for name in Artifact.__dataclass_fields__}
    run("candidate", ARTIFACT, params, using)
