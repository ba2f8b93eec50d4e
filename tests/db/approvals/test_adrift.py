"""Requests that have lost their wait, and waits that have lost their request: found by the liveness scan, and nobody else's are touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from approvals.core.status import RequestStatus
from approvals.models import Request
from tests.support import record
from tests.support.approving import World
from tests.support.sabotage import damage, is_quiet, scan_and_compare

pytestmark = pytest.mark.req("P1", "P2")
KEEPS_RECORD = TAMPERS = True


@pytest.fixture(autouse=True)
def other(world: World) -> Iterator[Request]:
    """A question that is as it should be."""
    asked = world.ask({"text": "another"})
    assert is_quiet() == []
    yield asked
    record.wipe()


@pytest.mark.parametrize("how", ["wait", "run"])
def test_a_question_for_which_nobody_waits_is_withdrawn(world: World, other: Request, how: str) -> None:
    request = world.ask({"text": "mine"})
    run = request.workflow_id
    damage(
        "UPDATE outlast_wait SET status = 'withdrawn', closed_at = now() WHERE workflow_id = %(id)s",
        "DELETE FROM outlast_timer WHERE workflow_id = %(id)s",
        "UPDATE outlast_workflow SET status = 'cancelled', outcome = 'CANCELLED', due_at = NULL WHERE id = %(id)s"
        if how == "run"
        else "UPDATE outlast_workflow SET status = 'runnable', outcome = '', due_at = NULL WHERE id = %(id)s",
        id=run,
    )
    findings, touched = scan_and_compare(run, f'"request_id": {request.pk}')
    assert touched == []
    assert {kind: one.status for kind, one in findings.items()} == {"request_adrift": "repaired"}
    assert world.status(request) == RequestStatus.CANCELLED
    assert world.status(other) == RequestStatus.PENDING
    assert is_quiet() == []


def test_a_wait_behind_which_nobody_is_asked_is_shown(world: World) -> None:
    request = world.ask({"text": "mine"})
    damage("UPDATE outlast_approval_request SET status = 'cancelled' WHERE id = %(id)s", id=request.pk)
    findings, touched = scan_and_compare(request.workflow_id)
    assert touched == []
    assert {kind: (one.status, one.facts["why"]) for kind, one in findings.items()} == {
        "request_adrift": ("open", "nobody is asked")
    }
