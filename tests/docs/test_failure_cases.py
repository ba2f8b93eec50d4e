"""Every case of failure has a test that names it, and no test names another."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.failures import CASES

TESTS = Path(__file__).parents[1]
MARK = re.compile(r'pytest\.mark\.failure\(\s*"([^"]+)"')


def test_each_case_has_its_test() -> None:
    named = {case for page in TESTS.rglob("test_*.py") for case in MARK.findall(page.read_text())}
    assert named == set(CASES)
