"""Each alert has its runbook, whole and where the alert says, and no runbook is about an alert that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations"
RULES = (OPERATIONS / "alerts.yml").read_text().split("- alert: ")[1:]
ALERTS = [rule.split("\n")[0].strip() for rule in RULES]
PAGE = (OPERATIONS / "runbooks.md").read_text()
SECTIONS = {part.split("\n")[0].strip(): part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
PARTS = ("Means", "At stake", "Look at", "Do", "Over", "Do not")


def test_each_alert_has_its_section_and_each_such_section_its_alert() -> None:
    assert len(ALERTS) >= 10
    assert [name for name in SECTIONS if name.startswith("Outlast")] == ALERTS
    assert len(re.findall(r"^## ", PAGE, re.MULTILINE)) == len(SECTIONS), "a heading is there twice"


def test_each_alert_points_to_its_section() -> None:
    assert [re.findall(r"runbook_url: (\S+)", rule) for rule in RULES] == [
        [f"docs/operations/runbooks.md#{name.lower()}"] for name in ALERTS
    ]


def test_each_section_of_an_alert_has_all_its_parts() -> None:
    lacking = {
        name: [part for part in PARTS if not re.search(rf"^\*\*{part}\b", SECTIONS[name], re.MULTILINE)] for name in ALERTS
    }
    assert {name: parts for name, parts in lacking.items() if parts} == {}


def test_every_alert_that_is_named_exists() -> None:
    assert set(re.findall(r"\bOutlast[A-Z]\w+", PAGE)) <= set(ALERTS)
