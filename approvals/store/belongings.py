"""The tables of the human plane whose rows belong to a run, in the order in which they are deleted."""

from __future__ import annotations

from flows.core.belonging import Belonging

_REQUEST = ("request_id", "outlast_approval_request", "id")

BELONGINGS = (
    Belonging("outlast_review", "id", through=_REQUEST, values=("values",), texts=("comment",)),
    Belonging("outlast_approval_notice", "id", through=_REQUEST),
    # Locked: somebody may be answering, although the run has ended; the refused answer would hang on it.
    Belonging("outlast_approval_request", "id", unfinished="t.status = 'pending'", locked=True, values=("candidate", "evidence")),
)
