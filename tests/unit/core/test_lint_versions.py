"""The mistakes in the way from an older version, each found with its way out."""

from __future__ import annotations

from typing import Any

import pytest

from flows.core.definition import Flow
from flows.core.lint import problems_of_all
from flows.core.nodes import COMPLETE, Activity, Branch, End, Wait
from flows.core.policies import ESCALATE, Deadline
from tests.support.flow_values import work

pytestmark = pytest.mark.req("G2", "G5")


def flow(version: int, nodes: dict[str, Any] | None = None, **meta: Any) -> type[Flow]:
    body = nodes or {"first": Activity(work, then="done"), "done": End(COMPLETE)}
    options = type("Meta", (), {"name": "t-lint", "version": version, **meta})
    return type(f"V{version}", (Flow,), {"Meta": options, "__module__": f"v{version}", **body})


def found(*classes: type[Flow]) -> list[str]:
    messages = problems_of_all(classes)
    assert all(one.hint for one in messages)
    return [one.id.removeprefix("outlast_flows.") for one in messages]


async def later(state: Any) -> None: ...


def nothing() -> None: ...


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ({1: {}}, []),
        ({1: {"old": "first"}, 2: lambda state: None}, []),
        ({1: {"old": "done"}}, []),
        (7, ["E027"]),
        ({3: {}}, ["E045"]),
        ({4: {}}, ["E045"]),
        ({0: {}}, ["E045"]),
        ({True: {}}, ["E045"]),
        ({"1": {}}, ["E045"]),
        ({1: {"old": "nowhere"}}, ["E046"]),
        ({1: {1: "first"}}, ["E046"]),
        ({1: "a.path"}, ["E021"]),
        ({1: later}, ["E021"]),
        ({1: nothing}, ["E022"]),
        ({1: 5}, ["E020"]),
    ],
)
def test_a_step_from_an_older_version(steps: Any, expected: list[str]) -> None:
    assert found(flow(3, migrate_from=steps)) == expected


@pytest.mark.parametrize(("when", "expected"), [("at_wake", []), ("", []), ("wake", ["E027"]), (True, ["E027"])])
def test_when_it_is_done(when: Any, expected: list[str]) -> None:
    assert found(flow(2, migrate_from={1: {}}, migrate=when)) == expected


OLD = {
    "ask": Wait("t.old", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="fork"),
    "fork": Branch(lambda state: "go", choices={"go": "work"}),
    "work": Activity(work, then="end"),
    "end": End(COMPLETE),
}


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({"ask": "first", "work": "first"}, []),
        ({"ask": "first", "work": "first", "fork": "first", "end": "done"}, []),
        ({"ask": "first"}, ["E047"]),
        ({}, ["E047", "E047"]),
        ({"ask": "first", "work": "first", "never": "first"}, ["E046"]),
    ],
)
def test_every_node_at_which_a_run_can_stand_has_a_place(mapping: dict[str, str], expected: list[str]) -> None:
    assert found(flow(1, OLD), flow(2, migrate_from={1: mapping})) == expected
    assert found(flow(2, migrate_from={1: mapping})) == []  # without the older class nobody can tell


def test_a_function_answers_for_itself() -> None:
    assert found(flow(1, OLD), flow(2, migrate_from={1: lambda state: None})) == []
