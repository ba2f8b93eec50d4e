"""The same with real Celery workers: each kind of point is met by some process, which dies there, and the work ends right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.support.chaosapp.flows import Load, Three
from tests.support.crash import VARIABLE
from tests.support.processes import Site

LOADS, THREES = 10, 10


def work(site: Site) -> None:
    site.start_many(Load, [{"seconds": 0.01}] * LOADS)
    site.start_many(Three, [{}] * THREES)
    site.answer_load(LOADS)


@pytest.mark.req("T1", "A7", "F3")
def test_children_die_at_every_kind_of_point(site: Site, measured: Callable[[str, float], None]) -> None:
    met = site.folder / "met"
    met.mkdir()
    worker = site.worker(**{VARIABLE: f"once:child::{met}"})
    site.beat()
    work(site)
    took = site.wait("the end of the workflows", lambda: not site.open_runs(), seconds=120)
    kinds = Counter(path.name.partition(" ")[0] for path in met.iterdir())
    measured(f"all done after {kinds.total()} deaths of children ({dict(kinds)})", took)
    assert {f"{when} {name}" for when in ("before", "after") for name in ("claim", "advance", "move", "park", "fire timers")} <= {
        path.name for path in met.iterdir()
    }
    assert worker.is_alive()
    site.assert_sound(LOADS + THREES)


@pytest.mark.req("T1", "A7", "F3")
def test_whole_workers_die_at_the_arrows(site: Site) -> None:
    """A supervisor starts the worker again, under the same name and on the same host, each time that it has died."""
    met = site.folder / "met"
    met.mkdir()
    order = f"once:worker:register worker,claim,advance,move,park:{met}"
    site.beat()
    work(site)

    def supervised() -> bool:
        worker = site.procs.processes.get("worker")
        if worker is None or not worker.is_alive():
            if worker is not None:
                worker.kill()
            site.worker(ready=False, **{VARIABLE: order})
        return not site.open_runs()

    site.wait("the end of the workflows", supervised, seconds=180)
    assert len(list(met.iterdir())) >= 10
    site.assert_sound(LOADS + THREES)
