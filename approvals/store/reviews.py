"""The audit of answers: appended, never changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from approvals.core.status import VERDICTS
from flows.store.sql import literals, loads, run

RECORD = """
INSERT INTO outlast_review (
    request_id, verdict, digest, by_id, by_label, for_user_id, for_label, delegation_id, step, comment, values, refused, at)
VALUES (%(request)s::bigint, %(verdict)s, %(digest)s, %(by)s, %(by_label)s, %(for_user)s, %(for_label)s, %(delegation)s::bigint,
    %(step)s::int, %(comment)s, %(values)s::jsonb, %(refused)s, flows_now())
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said; `refused` is empty if it was taken, else the code. `for_user`: in whose name, if not in the own.

    `values`: what a form was filled in with, as JSON text.
    """

    verdict: str
    digest: str
    by: Any
    by_label: str
    comment: str
    refused: str = ""
    for_user: Any = None
    for_label: str = ""
    delegation: int | None = None
    step: int = 0
    values: str | None = None


def record(request_id: int, said: Said, using: str) -> int:
    """Keep what a person said."""
    params = {name: getattr(said, name) for name in Said.__slots__}
    number: int = run("record review", RECORD, {"request": request_id, **params}, using)[0][0]
    return number


TAKEN = f"""
SELECT by_id, by_label, verdict, digest, for_user_id, for_label, values FROM outlast_review
WHERE request_id = %(id)s::bigint AND refused = '' AND verdict IN ({literals(VERDICTS)}) ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class TakenRow:
    """An answer that was taken."""

    by: Any
    label: str
    verdict: str
    digest: str
    for_user: Any
    for_label: str
    values: Any


def taken(request_id: int, using: str) -> list[TakenRow]:
    """The answers that were taken, oldest first."""
    return [TakenRow(*(*row[:6], loads(row[6]))) for row in run("taken reviews", TAKEN, {"id": request_id}, using)]
