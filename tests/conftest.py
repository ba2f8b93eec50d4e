"""What every kind of test shares.  PostgreSQL and Redis are real: project/dev/pytest_servers.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.conf import DEFAULTS

# Most flows of these tests ask a role that has no members. What is refused then is tested where this is switched on.
DEFAULTS["REFUSE_UNANSWERABLE"] = False

TESTS = Path(__file__).parent
NEEDS_THE_MACHINE = {"acceptance", "chaos"}
#: These start one process after another and wait for each to end: nothing is timed, and two of them may share the machine.
SHARES = "test_crash_points"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Suites of real processes run alone; `-m serial` selects them."""
    for item in items:
        shares = item.path.name.startswith(SHARES) and "celery" not in item.path.name
        if NEEDS_THE_MACHINE & set(item.path.relative_to(TESTS).parts) and not shares:
            item.add_marker(pytest.mark.serial)
