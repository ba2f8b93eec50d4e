"""What Celery says of a turn, in its events and its log, and so Flower: flow, node and attempt."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.host import TOLD, WorkerHost
from tests.support.chaosapp.flows import Three
from tests.support.processes import Site

WORDS = "; ".join(f"chaos-three.{node} attempt 1 succeeded" for node in ("one", "two", "three"))


@pytest.mark.req("V2")
def test_a_turn_says_which_attempts_it_made(site: Site) -> None:
    worker = site.worker("told")
    run = site.start(Three)
    site.wait_complete(run)
    site.wait("the turn to say so", lambda: WORDS in worker.output())
    assert "chaos-three.one[" in worker.output()


def test_the_last_ones_are_named_where_there_are_many() -> None:
    host: Any = object.__new__(WorkerHost)
    host._tried = []
    assert host.told() is None
    for number in range(TOLD + 3):
        host.tried(f"f.n attempt {number} succeeded")
    told = host.told()
    assert told.startswith("3 before; f.n attempt 3 succeeded; ")
    assert told.endswith(f"f.n attempt {TOLD + 2} succeeded")
    assert host.told() is None
