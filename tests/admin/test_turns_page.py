"""The calls of agent turns on a workflow's page and in `flows show`: what models and tools said is labelled and escaped."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from flows.admin import paging
from flows.core.turn_errors import ToolFailed
from tests import factories
from tests.factories import Line
from tests.support.approving import PASSWORD, World
from tests.support.turning import Turn, does, go, says

pytestmark = pytest.mark.req("O1", "F1")

EVIL = "<script>alert(1)</script>\u202e"


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


def turned(world: World) -> Any:
    def code(attempt: Any) -> Any:
        journal = attempt.journal
        journal.model("ask", says({"say": EVIL}, cost="0.03"), model="m-1")
        journal.tool("read", {"path": EVIL}, lambda: journal.unit("inside", does(EVIL)))
        with pytest.raises(ToolFailed):
            journal.tool("fail", {}, does(ValueError(EVIL)))
        return go()

    factories.does["think"] = code
    run = Turn.start({})
    world.worker.run()
    return run


def test_each_call_has_its_line_and_nothing_in_it_is_markup(world: World) -> None:
    shown = page(turned(world))
    for text in (
        "Calls of agent turns", "Arguments (data)", "Answer (data)", "1/2", "in 2", "input tokens 10", "cost 0.03", "m-1",
        "UNCLASSIFIED_ERROR", "&lt;script&gt;alert(1)&lt;/script&gt;", "RIGHT-TO-LEFT OVERRIDE",
    ):  # fmt: skip
        assert text in shown, text
    assert "<script>alert" not in shown


def test_only_the_newest_are_shown_and_no_section_where_there_are_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = turned(world)
    monkeypatch.setattr(paging, "SIZE", 2)
    assert "Only the newest entries are shown." in page(run)
    other = Line.start({})
    world.worker.run()
    assert "Calls of agent turns" not in page(other)


def test_the_command_lists_them_without_arguments_and_answers(world: World) -> None:
    run = turned(world)
    text, data = io.StringIO(), io.StringIO()
    call_command("flows", "show", str(run.id), stdout=text)
    assert "1/3 in 2" in text.getvalue()
    assert "alert(1)" not in text.getvalue()
    call_command("flows", "show", str(run.id), "--json", stdout=data)
    calls = json.loads(data.getvalue())["agent_turns"]
    assert [(one["kind"], one["name"], one["status"], one["within"]) for one in calls] == [
        ("model", "ask", "done", 0), ("tool", "read", "done", 0), ("unit", "inside", "done", 2), ("tool", "fail", "failed", 0),
    ]  # fmt: skip
    assert not {"answer", "request"} & set(calls[0])
