"""The pytest plugin: the fixture `outlast`, and the marker that says how it is to be.

It is loaded by every pytest of an environment with Outlast in it, before there are settings: nothing of Django is imported here before a
test asks for the fixture, and a project that has none of our apps is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tasks.testing.toolkit import Outlast

MARKER = "outlast(workers, network, patience): how the fixture `outlast` is to be; workers='real', network=True, seconds for the workers"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def outlast(request: pytest.FixtureRequest) -> Iterator[Outlast]:
    """A kit for the flows of this test: workers, durable time, events, answers, crashes, the record. See `tasks.testing.Outlast`."""
    wanted = {"workers": "local", "network": False, "patience": 60.0}
    for mark in request.node.iter_markers("outlast"):
        if mark.args or set(mark.kwargs) - set(wanted):
            pytest.fail(f"@pytest.mark.outlast takes {', '.join(f'{name}=' for name in wanted)} and nothing else", pytrace=False)
        wanted = {**mark.kwargs, **{name: value for name, value in wanted.items() if name not in mark.kwargs}}
    if wanted["workers"] not in ("local", "real"):
        pytest.fail(f'workers={wanted["workers"]!r}: say "local" or "real"', pytrace=False)
    real = wanted["workers"] == "real"
    _open_database(request, real=real)
    from tasks.testing.toolkit import kit

    with kit(real=real, network=bool(wanted["network"]), patience=float(str(wanted["patience"]))) as made:
        yield made


def _open_database(request: pytest.FixtureRequest, *, real: bool) -> None:
    """By pytest-django, as the test's own marker says; in a transaction where it says nothing. Real workers see only what is committed."""
    if not request.config.pluginmanager.hasplugin("django"):
        pytest.fail("the fixture `outlast` needs pytest-django: pip install pytest-django", pytrace=False)
    mark = request.node.get_closest_marker("django_db")
    commits = "transactional_db" in request.fixturenames or bool(mark and mark.kwargs.get("transaction"))
    if real and not commits:
        pytest.fail(
            'real workers see only what is committed: say @pytest.mark.django_db(transaction=True), or leave workers="real" away',
            pytrace=False,
        )
    request.getfixturevalue("transactional_db" if commits else "db")
