"""Decision artifacts: one row for each attempt of a Decision, with the arrow that ends it (O1).

accepted    choice, digest and revision of the candidate      the arrow that stores it as the activity's result
refused     the code                                          the arrow that tries again, goes elsewhere, or asks a person
            BUDGET_EXHAUSTED                                  the arrow of an agent turn whose next call found no budget
            APPROVAL_PENDING                                  the arrow of a turn that waits for people to answer about its tools
no row      the worker was lost, or somebody else moved the workflow meanwhile: the attempt's own history says so
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from flows.core import artifact, moves
from flows.core.artifact import ModelCall
from flows.core.decide import Decided
from flows.core.errors import ApprovalPending
from flows.core.nodes.activity import Decision
from flows.core.state import Completed, Failed, Pending, Trigger, Woken
from flows.models import Candidate
from flows.services.arrows import Ending
from flows.services.owned import Owned
from flows.store import candidates as store
from flows.store.sql import dumps

#: What a program is told of one; hashes, numbers and codes only.
FIELDS = (
    *("id", "node", "activity_seq", "attempt", "revision", "choice", "digest", "refused", "release", "model"),
    *("prompt_hash", "context_hash", "output_hash", "usage", "evidence_digest", "at"),
)


def of_attempt(owned: Owned, trigger: Trigger, decided: Decided, ending: Ending | None) -> store.Artifact | None:
    """The artifact of the attempt that has ended so; None where it was no Decision's, or its code was not run."""
    definition, activity = owned.definition, owned.state.activity
    if definition is None or activity is None or ending is None:
        return None
    lacked = isinstance(trigger, Woken) and bool(ending.calls) and decided.refusal is not None  # a call found no budget
    ended = lacked or isinstance(trigger, Completed | Failed | Pending)
    if not ended or not isinstance(definition.nodes.get(activity.node), Decision):
        return None
    refused = (
        trigger.failure.code if isinstance(trigger, Failed) else ApprovalPending.code if isinstance(trigger, Pending) else ""
    )
    if lacked and decided.refusal is not None:
        refused = decided.refusal.verdict
    if isinstance(decided.move, moves.CancelSelf):
        refused = refused or decided.move.code
    result: Mapping[str, Any] = trigger.result if isinstance(trigger, Completed) and isinstance(trigger.result, Mapping) else {}
    last = ending.calls[-1] if ending.calls else ModelCall("")
    return store.Artifact(
        workflow=owned.row.id,
        node=activity.node,
        seq=activity.seq,
        attempt=activity.number,
        revision=activity.visit,
        choice=str(result.get("choice", "")),
        digest=str(result.get("digest", "")),
        refused=refused,
        release=owned.row.release,
        model=last.model,
        prompt_hash=last.prompt_hash,
        context_hash=last.context_hash or ending.context_hash,
        output_hash=last.output_hash,
        usage=dumps(artifact.usage_of(ending.calls)),
        evidence_digest=artifact.digest_of(result.get("evidence")),
    )


def record(made: store.Artifact, using: str) -> None:
    """Write it, in the transaction of the arrow that ends the attempt."""
    store.record(made, using)


def of(workflow_id: UUID, using: str) -> Sequence[Mapping[str, Any]]:
    """The artifacts of a workflow, oldest first."""
    return list(Candidate.objects.using(using).filter(workflow_id=workflow_id).order_by("pk").values(*FIELDS))
