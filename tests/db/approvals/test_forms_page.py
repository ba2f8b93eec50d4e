"""The page about forms: its flow is asked, answered as the page says, and its test passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from approvals.models import Request
from flows.models import Workflow
from tests.docs.test_code_blocks import FORMS, written_in
from tests.factories import offer
from tests.support.approving import World
from tests.support.filling import file
from tests.support.laddering import somebody


@pytest.fixture
def written(world: World, settings: Any, tmp_path: Path) -> Iterator[dict[str, Any]]:
    settings.MEDIA_ROOT = tmp_path
    with written_in(FORMS) as names:
        offer(world.worker)
        yield names


def test_the_test_of_the_page_passes(world: World, written: dict[str, Any]) -> None:
    written["test_tools_are_ordered"](world.worker, somebody("bea", role="buyers"))


def test_another_channel_is_told_what_is_wrong_and_then_taken(world: World, written: dict[str, Any]) -> None:
    bea = somebody("bea", role="buyers")
    run = written["BuyTools"].start({"tools": ["drill"]}, by=world.robin)
    world.worker.run()
    request = Request.objects.get(workflow_id=run.id)
    code, _sentence, errors = written["from_chat"](bea, request, {"price": 1.5, "go_on": "yes", "supplier": "Bolt & Co"}, file())
    assert (code, list(errors)) == ("ANSWER_INVALID", ["price"])
    values = {"price": "19.90", "go_on": "yes", "supplier": "Bolt & Co"}
    assert written["from_chat"](bea, request, values, file())[0] == "accepted"
    world.worker.run()
    row = Workflow.objects.get(pk=run.id)
    assert (row.status, row.node) == ("complete", "done")
