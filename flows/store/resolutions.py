"""Answers to the question what became of an operation. Append-only: a trigger holds it."""

from __future__ import annotations

from typing import Any

from flows.store.sql import run

ADD = """
INSERT INTO outlast_resolution (operation_id, source, answer, external_id, evidence, reason, by_id, by_label, counted, at)
VALUES (%(operation)s, %(source)s, %(answer)s, %(external_id)s, %(evidence)s::jsonb, %(reason)s, %(by)s, %(by_label)s, %(counted)s::bool,
    flows_now())
"""


def add(
    operation: str,
    *,
    source: str,
    answer: str,
    counted: bool,
    evidence: str | None = None,
    external_id: str = "",
    reason: str = "",
    by: Any = None,
    by_label: str = "",
    using: str,
) -> None:
    """Keep one answer; `counted`: it settled the operation."""
    params = {
        "operation": operation,
        "source": source,
        "answer": answer,
        "counted": counted,
        "evidence": evidence,
        "external_id": external_id,
        "reason": reason,
        "by": by,
        "by_label": by_label,
    }
    run("resolution", ADD, params, using)
