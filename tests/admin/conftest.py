"""Pages are asked for through HTTP; what they show was committed by a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import fixtures
from tests.support.approving import world
from tests.support.fixtures import quick_commits, sound, transactional_db

__all__ = ["quick_commits", "sound", "transactional_db", "world"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    fixtures.commit_in(items, Path(__file__).parent)
