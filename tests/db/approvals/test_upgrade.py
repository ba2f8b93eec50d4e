"""Requests that were made before there were ladders: each becomes a ladder of one step, the same question as its node asks now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from approvals.models import Request
from flows import ESCALATE, Approval, Deadline
from tests.support.approving import World

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = [("outlast_approvals", "0002_guards"), ("outlast_flows", "0004_gate")]
ROLE = 'editors "of" ünïcode \\ news'


def migrate(targets: list[tuple[str, str]]) -> None:
    MigrationExecutor(connection).migrate(targets)


def latest() -> list[tuple[str, str]]:
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes()
    return [(app, name) for app, name in leaves if app in ("outlast_approvals", "outlast_flows")]


@pytest.fixture
def older(world: World) -> Iterator[Any]:
    """The tables as they were; afterwards the newest again."""
    newest = latest()
    migrate(BEFORE)
    try:
        yield newest
    finally:
        migrate(newest)


INSERT = """
INSERT INTO outlast_approval_request (workflow_id, wait_id, node, visit, role, answers, self_approval, candidate_node, candidate, digest,
    revision, intent_id, intent_version, epoch, policy_version, requester_label, asked_at, on_expiry, status, answer, answered_at)
VALUES (gen_random_uuid(), %s, 'ask', 1, %s, '{approved,denied}', false, 'propose', '{"choice": "", "value": 1}', 'sha256:0', 1,
    gen_random_uuid(), 1, 0, '', '', now(), 'escalate', %s, %s, %s)
"""


def test_a_role_becomes_a_ladder_of_one_step(older: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(INSERT, [1, ROLE, "pending", "", None])
        cursor.execute(INSERT, [2, ROLE, "approved", "approved", "2026-01-01T00:00:00Z"])
        cursor.execute(INSERT, [3, ROLE, "withdrawn", "", None])
    migrate(older)
    node = Approval(candidate="propose", role=ROLE, expires=Deadline(days=1, then=ESCALATE), approved="done", denied="done")
    rows = list(Request.objects.order_by("wait_id"))
    assert {row.ladder for row in rows} == {node.question["ladder"]}, "an open question goes on being the one that the node asks"
    assert rows[0].steps == [{"name": ROLE, "need": 1, "audience": {"role": ROLE}}]
    assert (rows[0].asked, rows[0].escalation, rows[0].bulk) == (ROLE, [], False)
    assert [(row.status, row.given) for row in rows] == [("pending", 0), ("approved", 1), ("cancelled", 0)]
    migrate(BEFORE)
    with connection.cursor() as cursor:
        cursor.execute("SELECT role, status FROM outlast_approval_request ORDER BY wait_id")
        assert cursor.fetchall() == [(ROLE, "pending"), (ROLE, "approved"), (ROLE, "withdrawn")]
        cursor.execute("SET outlast.retention = 'on'")
        cursor.execute("DELETE FROM outlast_approval_request")
        cursor.execute("RESET outlast.retention")
