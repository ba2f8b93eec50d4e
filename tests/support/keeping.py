"""Retention in tests: ended runs that are old, and a look of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from flows.core.retention import Retention
from flows.services.retention import looking
from flows.store import sql
from flows.store.aging import Progress

USING = "default"
#: Everything that has ended, at once.
NOW = Retention(days=1e-9)

#: A run (%s) still owes something.
COMMITMENT = """
INSERT INTO outlast_commitment (workflow_id, activity_seq, node, visit, name, kind, reference, status, releasable, may_defer, holder, reason,
    opened_at, closed_by)
VALUES (%s, 1, 'one', 1, 'window', 'window', '', 'active', false, false, '', '', flows_now(), '')
"""


def once(rules: Retention = NOW) -> int:
    """One batch from the beginning; how many runs it deleted."""
    return looking.once(rules, Progress(None, {}), USING).deleted


def query(statement: str, *given: Any) -> list[tuple[Any, ...]]:
    """Plain SQL."""
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return cursor.fetchall() if cursor.description else []


class Stopped(Exception):
    """The process is gone at this point."""


@contextmanager
def stopping(number: int) -> Iterator[None]:
    """Nothing goes on after the point of that number."""
    left = [number]

    def end(when: str, name: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Stopped(f"{when} {name}")

    with seam(end):
        yield


@contextmanager
def seam(act: Any) -> Iterator[None]:
    sql.seam = act
    try:
        yield
    finally:
        sql.seam = None
