"""What other rooms have the clock look for: in the one statement of a tick, and nobody's fault stops another one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from flows import dispatch, registry
from flows.registry import Watch
from flows.services import sweeps
from flows.store import tick
from flows.testing import LocalWorker
from tests.support.record import Counting
from tests.support.trace import Trace, tracing

pytestmark = pytest.mark.req("C3")

USING = "default"


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Register watches for this test; what comes back fills with the aliases that they were run with."""
    monkeypatch.setattr(registry, "_watches", dict(registry._watches))

    def register(name: str, exists: str = "true", run: Callable[[str], Any] | None = None) -> list[str]:
        ran: list[str] = []

        def act(using: str) -> None:
            ran.append(using)
            if run is not None:
                run(using)

        registry.register_watch(Watch(name, exists, act))
        return ran

    return register


def boom(using: str) -> None:
    raise ValueError("it broke")


def test_a_tick_does_what_its_watches_find(worker: LocalWorker, watching: Any) -> None:
    found, other = watching("found"), watching("not-found", "false")
    looked = sweeps.run_tick(USING)
    assert looked is not None
    assert looked.watches == ["found"]
    assert (found, other) == ([USING], [])


def test_one_that_raises_is_said_and_stops_no_other(worker: LocalWorker, watching: Any, caplog: pytest.LogCaptureFixture) -> None:
    broken, other = watching("broken", run=boom), watching("other")
    with caplog.at_level(logging.ERROR, "outlast.sweeps"):
        sweeps.run_tick(USING)
    assert (broken, other) == ([USING], [USING])
    assert [one.getMessage() for one in caplog.records] == ["the watch broken failed"]


def test_where_the_connection_is_gone_it_is_the_callers_to_take_another(worker: LocalWorker, watching: Any) -> None:
    def gone(using: str) -> None:
        connection.connection.close()
        raise ValueError("it broke")

    watching("gone", run=gone)
    with pytest.raises(ValueError, match="it broke"):
        sweeps.run_watch("gone", USING)
    connection.close()


def test_an_idle_second_is_still_one_statement(worker: LocalWorker, watching: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        watching(f"quiet-{number}", "EXISTS (SELECT FROM outlast_event WHERE status = 'held')")
    sweeps.run_tick(USING)
    with tracing(monkeypatch) as trace:
        sweeps.run_tick(USING)
    assert isinstance(trace, Trace)
    assert (trace.names, trace.others, trace.begun) == (["LOOK"], [], 0)


def test_what_a_watch_finds_is_not_idle(worker: LocalWorker, watching: Any) -> None:
    sweeps.run_tick(USING)
    watching("quiet", "false")
    assert sweeps.is_idle(USING)
    watching("found")
    assert not sweeps.is_idle(USING)


def test_without_any_the_look_names_none(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_watches", {})
    looked = tick.look(2.0, 0.0, USING)
    assert looked is not None
    assert looked.watches == []


def test_a_short_look_asks_for_its_watch_by_name(worker: LocalWorker, watching: Any, hints: Counting) -> None:
    ran = watching("pump", "false")
    dispatch.look_soon(0.1, "pump")
    assert (hints.looks, hints.watched) == ([0.1], ["pump"])
    sweeps.run_watch("pump", USING)
    assert ran == [USING], "it is not asked whether there is something"
    sweeps.run_watch("of-another-process", USING)
