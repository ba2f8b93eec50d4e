"""Real commits (activity code may not run inside a transaction of the test), and a sound record at the end of every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import fixtures
from tests.support.fixtures import clock, declare, hints, quick_commits, sound, transactional_db, worker

__all__ = ["clock", "declare", "hints", "quick_commits", "sound", "transactional_db", "worker"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    fixtures.commit_in(items, Path(__file__).parent)
