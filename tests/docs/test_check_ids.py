"""The page of the checks has a line for each id and none for another."""

from __future__ import annotations

import re
from pathlib import Path

from flows import checks
from flows.core import lint

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "checks.md"


def test_each_id_is_documented_with_its_meaning() -> None:
    lines = dict(re.findall(r"^\| `outlast_flows\.([EW]\d+)` \| (.+?) \|", PAGE.read_text(), re.MULTILINE))
    assert lines == {**lint.CATALOGUE, **checks.CATALOGUE}


def test_no_id_has_two_meanings() -> None:
    assert not set(lint.CATALOGUE) & set(checks.CATALOGUE)
