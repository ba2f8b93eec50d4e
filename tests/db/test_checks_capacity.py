"""What the checks say of dependencies, limits and admission."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, Dependency, End, Limit, checks
from flows.core import declared as declarations
from flows.services.capacity import health
from flows.testing import LocalWorker
from tests.factories import work

pytestmark = pytest.mark.req("G5", "R1", "R2")

Declare = Callable[..., type[flows.Flow]]


@pytest.fixture(autouse=True)
def things() -> Iterator[None]:
    before = list(declarations.DECLARED)
    yield
    declarations.DECLARED[:] = before


def found() -> list[tuple[str, str]]:
    """Of the things of this module: others stay declared where their tests ran before."""
    told = [(one.id.removeprefix("outlast_flows."), str(one.msg), str(one.obj or "")) for one in checks.check_capacity(None)]
    return [(code, text) for code, text, where in told if code != "E088" or "t_needy" in where]


def test_what_a_node_needs_is_declared(worker: LocalWorker, declare: Declare) -> None:
    declare("t-needy", one=Activity(work, needs="nobody", limits=["none"], then="done"), done=End(COMPLETE))
    assert found() == [
        ("E088", "Node 'one': needs='nobody' is not declared."),
        ("E088", "Node 'one': limits='none' is not declared."),
    ]
    Dependency("nobody")
    Limit("none", rate=3)
    assert found() == []


def test_numbers_of_what_is_declared() -> None:
    Dependency("d", rate=0)
    Limit("l")
    assert found() == [
        ("E089", "Dependency 'd' has rate=0."),
        ("E089", "Limit 'l' limits nothing."),
    ]


def test_the_flows_of_the_setting_are_there(settings: Any) -> None:
    settings.OUTLAST = {**settings.OUTLAST, "ADMISSION": {"t-line": 3, "*": 5, "t-gone": 1}}
    assert found() == [("E118", "settings.OUTLAST['ADMISSION'] limits 't-gone', and there is no such flow.")]


def test_what_the_record_counts_and_nobody_declares(transactional_db: None) -> None:
    Dependency("payments")
    health.make("payments", "default")
    health.make("node:t-line.one", "default")
    assert checks.check_capacity_kept(databases=["default"]) == []
    declarations.DECLARED.clear()
    (one,) = checks.check_capacity_kept(databases=["default"])
    assert (one.id, one.msg) == ("outlast_flows.W115", "The record counts in 'dependency:payments', which no code declares.")
    assert checks.check_capacity_kept(databases=[]) == []
