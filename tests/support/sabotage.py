"""Breaking a record behind the back of all guards; and what a scan may change then: nothing of anybody else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

from flows.models import Finding
from flows.services.liveness import scanning
from tests.support import record

#: Written by the scan itself, or by everybody who is alive.
OWN = {"outlast_finding", "outlast_scan", "outlast_tick", "outlast_worker"}


@contextmanager
def behind_the_guards() -> Iterator[Any]:
    """A cursor whose writes no trigger sees."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield cursor


def damage(*statements: str, **given: Any) -> int:
    """Run these; how many rows they hit."""
    hit = 0
    with behind_the_guards() as cursor:
        for statement in statements:
            cursor.execute(statement, given)
            assert cursor.rowcount > 0, f"hit nothing: {statement}"
            hit += cursor.rowcount
    return hit


def rows() -> Counter[str]:
    """Every row of the record, as text."""
    found: Counter[str] = Counter()
    with connection.cursor() as cursor:
        for table in record.tables():
            if table not in OWN:
                cursor.execute(f"SELECT to_jsonb(t)::text FROM {table} t")
                found.update(f"{table} {row[0]}" for row in cursor.fetchall())
    return found


def changed(before: Counter[str], after: Counter[str]) -> list[str]:
    """The rows that are not in both."""
    return sorted(((before - after) + (after - before)).elements())


def scan_and_compare(*mine: object) -> tuple[dict[str, Finding], list[str]]:
    """One scan: what it found, by kind, and the rows that it changed in which none of `mine` (ids, keys) is named."""
    before = rows()
    scanning.scan()
    left = [row for row in changed(before, rows()) if not any(str(one) in row for one in mine)]
    return {one.kind: one for one in Finding.objects.all()}, left


def is_quiet() -> list[str]:
    """What a scan finds now, as text; a healthy record has nothing."""
    scanning.scan(repair=False)
    found = Finding.objects.filter(closed_at__isnull=True)
    return [f"{one.kind} {one.subject} {json.dumps(one.facts)}" for one in found]
