"""Fixtures: servers of our own, which may be killed; a database, a folder and processes of its own for each test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from project.dev import servers
from tests.support.processes import Site


@pytest.fixture(scope="session")
def own_servers() -> Iterator[servers.Servers]:
    with servers.running(purpose="chaos", fresh=True, given=False, shared_buffers="64MB") as running:
        yield running


@pytest.fixture
def make_site(own_servers: servers.Servers, tmp_path: Path, django_db_blocker: Any) -> Iterator[Callable[..., Site]]:
    """`make_site(LEASE_SECONDS=2.0)`: the test's world, with these settings of Outlast."""
    opened: list[Site] = []

    def make(**outlast: Any) -> Site:
        opened.append(Site(own_servers, tmp_path, outlast).__enter__())
        return opened[-1]

    with django_db_blocker.unblock():
        yield make
        for site in opened:
            site.__exit__()


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    return make_site()


@pytest.fixture
def measured(record_property: Callable[[str, Any], None]) -> Callable[[str, float], None]:
    """`measured("taken up", seconds)`: said in the output (-s) and in the report file, and not asserted."""

    def note(what: str, value: float) -> None:
        record_property(what, value)
        sys.stdout.write(f"\nmeasured: {what}: {value:.3f}\n")

    return note


__all__ = ["make_site", "measured", "own_servers", "site"]
