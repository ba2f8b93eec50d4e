"""Fixtures of the suites that commit for real (db, race, property); their conftest imports them.

`transactional_db` replaces pytest-django's: that one TRUNCATEs, which append-only tables refuse, and empties what migrations wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from flows import Flow
from flows.testing import Clock, LocalWorker, local_worker, movable_clock
from tests import factories
from tests.support import record as records

DJANGO = {"db", "transactional_db", "django_db_reset_sequences", "django_db_serialized_rollback"}


def commit_in(items: Sequence[pytest.Item], folder: Path) -> None:
    """Tests of that folder commit, unless they say otherwise with `django_db` or `db`. Named here, so that the database is made."""
    for item in items:
        names = getattr(item, "fixturenames", None)
        if names is None or folder not in item.path.parents or item.get_closest_marker("django_db"):
            continue
        if not DJANGO & set(names):
            names.append("transactional_db")


def strays(request: pytest.FixtureRequest) -> bool:
    """Whether this test changes a definition, or what a function of it answers, under a run: then no replay can go the recorded way.

    (`TAMPERS`: all tests of the module edit the record.)
    """
    if getattr(request.module, "TAMPERS", False):
        return True
    named = getattr(request.module, "STRAYS", ())
    return request.node.name in named or request.node.name.partition("[")[0] in named


@pytest.fixture(scope="session")
def quick_commits(django_db_setup: None, django_db_blocker: Any) -> None:
    """Commits of tests need not reach the disk."""
    with django_db_blocker.unblock():
        records.prepare_session()


@pytest.fixture(autouse=True)
def sound(request: pytest.FixtureRequest, quick_commits: None, django_db_blocker: Any) -> Iterator[None]:
    """At the end of every test the log says what the rows say, nobody is stranded, and a replay goes the way that is recorded."""
    for name in sorted(DJANGO & set(request.fixturenames)) or ["db"]:
        request.getfixturevalue(name)
    yield
    if not getattr(request.module, "KEEPS_RECORD", False):
        with django_db_blocker.unblock():
            assert records.unsound() == []
            if not strays(request):
                records.as_replayed()
            assert records.stranded() == []
            assert records.unbalanced() == []


@pytest.fixture
def transactional_db(
    request: pytest.FixtureRequest, quick_commits: None, settings: Any, django_db_blocker: Any
) -> Iterator[None]:
    """Real commits, on an empty record; hints are counted, not published."""
    settings.OUTLAST = {**settings.OUTLAST, "DISPATCHER": records.COUNTING}
    records.counting.clear()
    factories.forget()
    with django_db_blocker.unblock():
        records.let_be_measured()
        yield
        if not getattr(request.module, "KEEPS_RECORD", False):
            records.wipe(large=bool(getattr(request.module, "LARGE", False)))


@pytest.fixture
def clock(transactional_db: None) -> Iterator[Clock]:
    """Business time of the whole database, other connections included: `clock.move(hours=3)`. Leases stay on real time."""
    with movable_clock() as moved:
        yield moved


@pytest.fixture
def worker(transactional_db: None) -> Iterator[LocalWorker]:
    """A worker in this process."""
    with local_worker() as made:
        yield made


@pytest.fixture
def declare(request: pytest.FixtureRequest, worker: LocalWorker) -> Iterator[Callable[..., type[Flow]]]:
    """Declare flows for this test; the worker offers them."""
    with factories.declaring(worker) as declaring:
        yield declaring
        if not strays(request):
            records.as_replayed()  # while they are known


@pytest.fixture
def hints(transactional_db: None) -> records.Counting:
    """What was published."""
    return records.counting
