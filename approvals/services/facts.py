"""What is recorded of a request, in the form that the judge takes."""

from __future__ import annotations

from approvals.core.binding import First, RequestFacts
from approvals.store import requests as store
from flows.core import canonical, payload
from flows.core.errors import PayloadError


def request_facts(request_id: int, using: str) -> RequestFacts | None:
    """The facts of a request at this moment; None if there is none."""
    row = store.facts(request_id, using)
    if row is None:
        return None
    first = None
    if row.first_verdict is not None:
        first = First(row.first_by, row.first_label or "", row.first_verdict, row.first_digest or "")
    return RequestFacts(
        status=row.status,
        role=row.role,
        answers=tuple(row.answers),
        self_approval=row.self_approval,
        requester=row.requester,
        digest=row.digest,
        sound_digest=_digest(row.candidate),
        intent_version=row.intent_version,
        intent_version_now=row.intent_version_now,
        intent_status=row.intent_status,
        workflow_status=row.workflow_status,
        epoch=row.epoch,
        epoch_now=row.epoch_now,
        waiting=row.waiting,
        expired=row.expired,
        first=first,
    )


def _digest(stored: object) -> str | None:
    """The digest of the frozen candidate, computed anew as the gate does before the effect; None if it has none."""
    try:
        candidate = payload.decode(stored)
        body = {"choice": candidate["choice"], "value": candidate["value"]}
        return canonical.digest(body, "the candidate")
    except (PayloadError, KeyError, TypeError):
        return None
