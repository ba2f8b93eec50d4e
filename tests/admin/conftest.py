from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import approving


@pytest.fixture
def world(django_db_setup: None, django_db_blocker: Any, settings: Any) -> Iterator[approving.World]:
    """Real commits: what an answer sets going is run by a worker, and activity code may not run inside a transaction."""
    settings.OUTLAST = {"DISPATCHER": ""}
    with django_db_blocker.unblock(), approving.world() as made:
        yield made
