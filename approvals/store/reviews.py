"""The audit of answers: appended, never changed."""

from __future__ import annotations

from typing import Any

from flows.store.sql import run

RECORD = """
INSERT INTO outlast_review (request_id, verdict, digest, by_id, by_label, comment, refused, at)
VALUES (%(request)s::bigint, %(verdict)s, %(digest)s, %(by)s, %(by_label)s, %(comment)s, %(refused)s, flows_now())
RETURNING id
"""


def record(request_id: int, *, verdict: str, digest: str, by: Any, by_label: str, comment: str, refused: str, using: str) -> int:
    """Keep what a person said; `refused` is empty if it was taken, else the code."""
    params = {
        "request": request_id,
        "verdict": verdict,
        "digest": digest,
        "by": by,
        "by_label": by_label,
        "comment": comment,
        "refused": refused,
    }
    number: int = run("record review", RECORD, params, using)[0][0]
    return number
