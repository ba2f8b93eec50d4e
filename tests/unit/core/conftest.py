"""Flows that a test declares are gone after it: nothing here is registered for other tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flows import registry
from flows.core import definition


@pytest.fixture(autouse=True)
def declared_for_this_test() -> Iterator[None]:
    before = list(definition.DECLARED)
    yield
    definition.DECLARED[:] = before
    registry._lookup.cache_clear()
