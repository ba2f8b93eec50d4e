"""`make storm`, with few events: real senders, a web process, workers and Beat; each event is taken once, and every delivery is counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.storm import senders
from benchmarks.storm.flows import TYPES
from project.dev import servers

ROOT = Path(__file__).parents[2]


def test_the_plan_is_made_by_its_seed_and_has_its_share_of_repeats() -> None:
    plan = senders.planned(200, 20, 0.3, 7)
    assert plan == senders.planned(200, 20, 0.3, 7) != senders.planned(200, 20, 0.3, 8)
    assert (len(plan), len(set(plan)), sum(one.by_http for one in plan)) == (220, 154, 20)
    assert {one.type for one in plan if not one.by_http} == set(TYPES)


@pytest.mark.req("E1", "Q1")
@pytest.mark.failure("duplicate event")
def test_each_event_is_consumed_once(own_servers: servers.Servers) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.storm.run", "--n", "400", "--http", "40", "--processes", "3"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"} | own_servers.environ(),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    line = json.loads(done.stdout.splitlines()[-1])
    assert (line["ok"], line["deliveries"], line["events"], line["consumed"]) == (True, 440, 308, 308)
    assert (line["counted"], line["taken_twice"], line["duplicates"]) == (440, 0, 132)
    assert line["wake_ups"] > 0 < line["p50_ms"] <= line["p99_ms"]
