"""A Map of many items while workers are killed at random: each item once, joined once (bar 4 of part 5; MAP_ITEMS=10000: in full)."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import pytest

from tests.support.chaosapp import journal
from tests.support.chaosapp.fans import Mapped
from tests.support.processes import Site

ITEMS = int(os.environ.get("MAP_ITEMS", "1000"))
EVERY = 1.0
PATIENCE = 120.0 + ITEMS / 10


@pytest.mark.req("G4", "T1")
def test_each_item_once_and_joined_once(site: Site, measured: Callable[[str, float], None]) -> None:
    dice = random.Random(20)
    site.beat()
    workers = {name: site.worker(name) for name in ("one", "two")}
    began = time.monotonic()
    run = site.start(Mapped, {"count": ITEMS})
    kills, last, seen = 0, time.monotonic(), 0
    while not site.is_complete(run):
        assert time.monotonic() - began < PATIENCE, site.tails()
        counted = site.rows("SELECT coalesce(sum(succeeded), 0)::int FROM outlast_fan")[0][0]
        if time.monotonic() - last >= EVERY and counted > seen:  # where nothing is done yet, a kill would hit nobody at work
            name = dice.choice(sorted(workers))
            workers[name].kill()
            workers[name] = site.worker(name, ready=False)
            kills, last, seen = kills + 1, time.monotonic(), counted
        time.sleep(0.02)
    measured(f"{ITEMS} items with {kills} kills", time.monotonic() - began)
    assert kills
    done = [line["operation"] for line in journal.read(site.world, journal.DONE)]
    assert len(done) == len(set(done)), "an item, or what comes after them, happened twice"
    # The mark is the effect; who is killed between it and its line in the journal has had it all the same.
    assert len(list((site.world / "marks").iterdir())) == ITEMS + 1, "an item never happened"
    assert site.rows("SELECT status, total, succeeded, running FROM outlast_fan") == [("closed", ITEMS, ITEMS, 0)]
    joins = "SELECT count(*) FROM outlast_transition WHERE workflow_id = %s AND trigger = 'children'"
    assert site.rows(joins, run) == [(1,)]
    assert not site.rows("SELECT FROM outlast_branch WHERE counted_at IS NULL OR status <> 'succeeded'")
    site.assert_sound(ITEMS + 1)
