"""What the alerts and the dashboard ask for exists, and nothing is shown that they and the page leave out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flows.core.measures import BOUNDS, Bucket
from flows.core.metrics import METRICS
from flows.core.objectives import SPANS, Objectives

pytestmark = pytest.mark.req("Q1", "Q2")

DOCS = Path(__file__).parents[2] / "docs"
NAME = re.compile(r"\boutlast_[a-z_]+")
ALERTS = (DOCS / "operations" / "alerts.yml").read_text()
BOARD = json.loads((DOCS / "operations" / "grafana.json").read_text())
PAGE = (DOCS / "reference" / "metrics.md").read_text()


def asked(text: str) -> set[str]:
    return set(NAME.findall(text))


def board() -> str:
    return "\n".join(target["expr"] for panel in BOARD["panels"] for target in panel["targets"])


def test_alerts_and_dashboard_ask_for_what_there_is_and_for_all_of_it() -> None:
    assert asked(ALERTS) <= set(METRICS)
    assert asked(board()) == set(METRICS)


def test_their_labels_are_those_of_the_metrics() -> None:
    known = {label for metric in METRICS.values() for label in metric.labels} | {"instance"}
    for name, selector in re.findall(r"(outlast_[a-z_]+)\{([^}]*)\}", ALERTS + board()):
        assert set(re.findall(r"([a-z]+)(?:=~|!~|!=|=)", selector)) <= set(METRICS[name].labels), selector
    grouped = re.findall(r"\b(?:by|without|on|ignoring) \(([^)]*)\)", ALERTS + board())
    assert {label.strip() for group in grouped for label in group.split(",") if label.strip()} <= known
    assert set(re.findall(r"\$labels\.([a-z]+)", ALERTS)) <= known
    legends = {
        label for panel in BOARD["panels"] for t in panel["targets"] for label in re.findall(r"{{(\w+)}}", t["legendFormat"])
    }
    assert legends <= known


def test_each_alert_says_what_to_do() -> None:
    rules = ALERTS.split("- alert: ")[1:]
    assert len(rules) >= 10
    assert [
        rule.split("\n")[0] for rule in rules if not all(word in rule for word in ("expr:", "severity:", "summary:", "action:"))
    ] == []


def test_the_page_has_each_metric_with_its_labels() -> None:
    rows = re.findall(r"^\| `(outlast_\w+)` \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    assert rows == [(one.name, ", ".join(f"`{label}`" for label in one.labels) or "–", one.help) for one in METRICS.values()]


def test_the_page_has_each_bucket() -> None:
    section = PAGE.split("## Buckets")[1].split("## ")[0]
    assert re.findall(r"^\| `([a-z ]+)` \|", section, re.MULTILINE) == [bucket.value for bucket in Bucket]
    assert len(BOUNDS) == 21


def test_the_page_about_measures_has_each_argument_of_objectives() -> None:
    page = (DOCS / "how-to" / "measures.md").read_text()
    assert [name for name in Objectives.__dataclass_fields__ if f"| `{name}` |" not in page] == []
    assert set(SPANS.values()) <= set(Objectives.__dataclass_fields__)
