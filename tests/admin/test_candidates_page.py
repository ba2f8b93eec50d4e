"""Decision artifacts on the workflow's page: what was proposed under what, escaped; and no section where no model decided."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

import flows
from flows import Candidate
from flows.admin import paging
from flows.errors import InvalidCandidate
from tests import factories
from tests.factories import Line, does
from tests.support.approving import PASSWORD, World
from tests.support.deciding import HASH, Decide, patch, rows

pytestmark = pytest.mark.req("O1")

EVIL = "<script>alert(1)</script>\u202em-1"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


@pytest.fixture(autouse=True)
def plain() -> Any:
    factories.forget()
    yield
    factories.forget()


def page(run: Any) -> str:
    client = Client()
    assert client.login(username="vera", password=PASSWORD)
    response = client.get(reverse("admin:outlast_flows_workflow_change", args=[run.id]))
    assert response.status_code == 200
    return response.content.decode()


def decided(world: World) -> Any:
    def choose(attempt: Any) -> Candidate:
        made = attempt.context(max_tokens=1000)
        attempt.record_model(EVIL, prompt=made.text, output_hash=HASH, usage={"input_tokens": 1234, "cost": "0.05"})
        if attempt.number == 1:
            raise InvalidCandidate("malformed")
        return patch(attempt)

    does["choose"] = choose
    run = Decide.start({"key": "k"})
    world.worker.run()
    flows.signal("e", "t.decide", key="k", payload={})
    factories.drive(world.worker, world.clock)
    return run


def test_each_attempt_has_its_line_and_nothing_in_it_is_markup(world: World) -> None:
    run = decided(world)
    shown = page(run)
    first, second = rows(run)
    for text in (
        "Decisions of models",
        '<span class="oa-chip oa-chip-failed">INVALID_CANDIDATE</span>',
        '<span class="oa-chip oa-chip-complete">accepted</span>',
        f'candidate <code title="{second.digest}">{second.digest[7:19]}</code>',
        f'output <code title="{HASH}">{HASH[7:19]}</code>',
        f'context <code title="{first.context_hash}">',
        "input tokens 1234",
        "cost 0.05",
        ESCAPED,
        '<span class="oa-hidden" title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>',
    ):
        assert text in shown, text
    assert "<script>alert" not in shown
    assert shown.index(">accepted<") < shown.index(">INVALID_CANDIDATE</span>"), "the newest first"


def test_where_no_model_decided_there_is_no_section(world: World) -> None:
    run = Line.start({})
    world.worker.run()
    assert "Decisions of models" not in page(run)


def test_only_the_newest_are_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "SIZE", 1)
    run = decided(world)
    shown = page(run)
    assert "Only the newest entries are shown." in shown
    assert "oa-chip-complete" in shown
    assert ">INVALID_CANDIDATE</span>" not in shown
