"""What every kind of test shares.  PostgreSQL and Redis are real: project/dev/pytest_servers.py."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
NEEDS_THE_MACHINE = {"acceptance", "chaos"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Suites of real processes run alone; `-m serial` selects them."""
    for item in items:
        if NEEDS_THE_MACHINE & set(item.path.relative_to(TESTS).parts):
            item.add_marker(pytest.mark.serial)
