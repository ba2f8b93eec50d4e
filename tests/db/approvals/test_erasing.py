"""What a person was asked, wrote and gave goes with an erased or deleted run; that they answered, and what, stays of an erased one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from approvals.models import Request, Review
from approvals.services.packet import packet
from flows.models import Transition, Workflow
from flows.services import describe, erasing
from tests.support.approving import World
from tests.support.filling import OrderParts, file, fill
from tests.support.keeping import once, query

pytestmark = pytest.mark.req("A4")

SECRET = "Bolts for Mr Smith"


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def answered(world: World) -> Request:
    request = world.ask(flow=OrderParts)
    assert fill(world, request, title=SECRET, files={"contract": file(b"x", "a.pdf")})
    world.worker.run()
    return Request.objects.get(pk=request.pk)


def test_answers_and_files_of_an_erased_run_are_gone_and_who_answered_stays(
    world: World, answered: Request, folder: Path
) -> None:
    assert files(folder)
    found = erasing.erase_user(world.robin, by=world.sue, reason="asked to")
    assert found.runs == (answered.workflow_id,)
    assert files(folder) == []
    for table in (
        "outlast_workflow",
        "outlast_activity",
        "outlast_wait",
        "outlast_review",
        "outlast_approval_request",
        "outlast_intent",
    ):
        assert SECRET not in json.dumps(query(f"SELECT to_jsonb(t)::text FROM {table} t")), table
    review = Review.objects.get()
    assert (review.verdict, review.by_label, review.digest) == ("answer", "rita", answered.digest)
    assert review.values == {"$outlast": "erased"}
    row = Transition.objects.order_by("seq").last()
    assert row is not None
    assert (row.trigger, row.trigger_ref, row.note) == ("erase", "sue", {"reason": "asked to"})
    assert describe.describe(answered.workflow_id).status == "complete"
    assert not next(iter(describe.verify(answered.workflow_id)))[1]
    assert packet(Request.objects.get(), world.robin, "default")


def test_a_deleted_run_takes_its_requests_answers_and_files_along(world: World, answered: Request, folder: Path) -> None:
    query("UPDATE outlast_notice SET sent_at = flows_now()")
    assert once() == 1
    assert not Workflow.objects.exists()
    assert not Request.objects.exists()
    assert not Review.objects.exists()
    assert files(folder) == []


def test_a_run_whose_request_is_open_stays(world: World) -> None:
    world.ask(flow=OrderParts)
    assert once() == 0
    query("UPDATE outlast_approval_request SET status = 'cancelled'")
    assert once() == 0, "it is live"
