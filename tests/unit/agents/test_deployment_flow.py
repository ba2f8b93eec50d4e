"""The deployment agent's graph as it is declared, and what it says of each effect."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps

from flows import checks
from flows.core import graph, lint
from flows.core.nodes import Activity, Wait
from flows.errors import PolicyDenied
from project.agents.deployment.flows import DeployService
from project.agents.deployment.policy import check_input, ready, verdict

DEFINITION = DeployService.definition
NODES = DEFINITION.nodes
EFFECTS = {name: node.effect for name, node in NODES.items() if isinstance(node, Activity) and node.effect}
GOOD = {"service": "shop", "version": "2.0", "cloud": "http://127.0.0.1:1", "minutes": 30, "opens_in": 0}


class Seen:
    """The frozen state of a pure function."""

    def __init__(self, **results: Any) -> None:
        self.results = results


def test_it_is_declared_without_a_mistake() -> None:
    assert lint.problems(DEFINITION) == []
    mine = [app for app in apps.get_app_configs() if app.name == "project.agents.deployment"]
    assert len(mine) == 1
    assert checks.check_flows(mine) == []


def test_the_way() -> None:
    assert (DEFINITION.name, DEFINITION.version, DEFINITION.start) == ("deploy-service", 1, "reserve")
    assert {(name, label): target for name, node in NODES.items() for label, target in node.targets() if label in LABELS} == {
        ("reserve", ""): "opened", ("opened", ""): "check", ("opened", "deadline"): "gave_up", ("check", ""): "ready",
        ("ready", "go"): "canary", ("ready", "later"): "recover", ("ready", "never"): "gave_up", ("recover", ""): "check",
        ("canary", ""): "observe", ("observe", ""): "slo", ("observe", "deadline"): "slo", ("slo", ""): "verdict",
        ("verdict", "keep"): "promote", ("verdict", "drop"): "roll_back", ("promote", ""): "done", ("roll_back", ""): "rolled_back",
    }  # fmt: skip


LABELS = {"", "deadline", "go", "later", "never", "keep", "drop"}


def test_every_effect_can_be_asked_about_and_says_what_it_asks_for() -> None:
    assert set(EFFECTS) == {"reserve", "canary", "promote", "roll_back"}
    assert all(effect.reconcile and effect.request for effect in EFFECTS.values())


def test_what_stays_outside_can_be_undone_and_undoing_can_be_asked_about() -> None:
    assert {name for name, effect in EFFECTS.items() if effect.compensation} == {"canary", "promote"}
    reserve = NODES["reserve"]
    assert isinstance(reserve, Activity)
    servicings = [effect.compensation for effect in EFFECTS.values() if effect.compensation]
    servicings += [one.servicing for one in reserve.commitments if one.servicing]
    assert len(servicings) == 3
    assert all(servicing.reconcile for servicing in servicings)


def test_a_window_that_may_be_asked_for_fits_into_every_deadline() -> None:
    opened, reserve = NODES["opened"], NODES["reserve"]
    assert isinstance(opened, Wait) and isinstance(reserve, Activity)
    (window,) = reserve.commitments
    assert opened.deadline and window.deadline and DEFINITION.deadline
    most = {"opens_in": opened.deadline.after.total_seconds(), "minutes": window.deadline.after.total_seconds() / 60}
    for name, value in most.items():
        with pytest.raises(PolicyDenied, match=name):
            check_input({**GOOD, name: value})
    assert window.deadline.after < DEFINITION.deadline.after


def test_it_can_be_drawn() -> None:
    text = graph.mermaid(DEFINITION)
    assert all(f'"{name}<br/>' in text for name in NODES)
    assert graph.svg(DEFINITION).startswith("<svg")


@pytest.mark.parametrize("wrong", [{"service": None}, {"version": ""}, {"cloud": "ftp://x"}, {"minutes": "3"}, {"opens_in": -1}])
def test_only_what_can_be_carried_out_is_allowed(wrong: dict[str, Any]) -> None:
    check_input(GOOD)
    with pytest.raises(PolicyDenied):
        check_input({**GOOD, **wrong})


@pytest.mark.parametrize(
    ("healthy", "window", "choice"),
    [
        (True, "open", "go"), (False, "open", "later"), (True, "reserved", "later"), (True, "expired", "never"),
        (False, "released", "never"),
    ],
)  # fmt: skip
def test_only_a_healthy_service_in_an_open_window_gets_a_canary(healthy: Any, window: str, choice: str) -> None:
    assert ready(Seen(check={"healthy": healthy, "window": window})) == choice  # type: ignore[arg-type]


@pytest.mark.parametrize(("ok", "choice"), [(True, "keep"), (False, "drop"), (None, "drop"), ("yes", "drop")])
def test_only_a_plain_yes_is_one(ok: Any, choice: str) -> None:
    assert verdict(Seen(slo={"ok": ok})) == choice  # type: ignore[arg-type]
