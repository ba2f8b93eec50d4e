"""The how-to about guarded tools is followed: its flow is started, its question answered, its call made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group

from approvals.core import status
from approvals.tools import ToolRefused
from flows.core.errors import ApprovalPending
from flows.models import Workflow
from tests.docs.test_code_blocks import ROOT, first_column, section, written_in
from tests.factories import offer
from tests.support.approving import World
from tests.support.tooling import asked, now

PAGE = ROOT / "docs" / "how-to" / "tool-approvals.md"

pytestmark = pytest.mark.req("F6")


@pytest.fixture
def written(world: World) -> Iterator[dict[str, Any]]:
    with written_in(PAGE) as names:
        offer(world.worker)
        world.rita.groups.add(Group.objects.create(name="finance"))
        yield names


@pytest.mark.parametrize(
    ("verdict", "result"),
    [("approve", {"paid": 120}), ("deny", {"refused": "TOOL_DENIED", "comment": "Not this one."})],
)
def test_a_complaint_is_handled(world: World, written: dict[str, Any], verdict: str, result: dict[str, Any]) -> None:
    run = Workflow.objects.get(pk=written["HandleComplaint"].start({"order": 7}, by=world.robin).id)
    world.worker.run()
    (request,) = asked(run)
    assert request.candidate["value"] == {"arguments": {"order": 7, "amount": 120}, "target": "order 7", "tool_version": "1"}
    world.decide(request, verdict, comment="Not this one.")
    world.worker.run()
    assert (now(run).status, now(run).result) == ("complete", result)
    assert written["PAID"] == ({"7": 120} if verdict == "approve" else {})


def test_every_error_has_its_line() -> None:
    def all_of(cls: type) -> set[type]:
        return {cls}.union(*map(all_of, cls.__subclasses__()))

    wanted = {cls.__name__ for cls in all_of(ToolRefused) - {ToolRefused}} | {ApprovalPending.__name__, "OutsideAttempt"}
    assert set(first_column(section(PAGE, "## What a call raises"))) == wanted
    codes = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert [cls.code for cls in all_of(ToolRefused) - {ToolRefused} if f"`{cls.code}`" not in codes] == []


def test_the_words_for_answers_are_those_of_nodes() -> None:
    from approvals.core.tools import ANSWERS

    assert set(ANSWERS) == set(status.ANSWERS.values()) - {"narrowed"}, "a call is made as it was asked about"
