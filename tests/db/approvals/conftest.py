from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import approving


@pytest.fixture
def transactional_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Real commits. pytest-django's own fixture would TRUNCATE, which append-only tables refuse, and would empty what migrations wrote."""
    with django_db_blocker.unblock():
        yield
        approving.clean()


@pytest.fixture
def world(transactional_db: None, settings: Any) -> Iterator[approving.World]:
    """What an answer sets going is run by a worker, and activity code may not run inside a test's transaction."""
    settings.OUTLAST = {"DISPATCHER": ""}
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick ones
    with approving.world() as made:
        yield made
