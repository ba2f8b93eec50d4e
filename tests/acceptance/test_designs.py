"""`make designs`: real processes, the cloud's ledger as the judge, and one line per design."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.designs import faults, judge, report, sides
from project.dev import servers

ROOT = Path(__file__).parents[2]
RUNS = 3


def measured(own_servers: servers.Servers, *designs: str) -> tuple[str, list[dict[str, Any]]]:
    """What is printed before the lines, and the lines."""
    command = [sys.executable, "-m", "benchmarks.designs.harness", "--runs", str(RUNS), "--duration", "8"]
    done = subprocess.run(
        [*command, "--designs", ",".join(designs)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"} | own_servers.environ(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text, found, lines = done.stdout.partition('\n{"design"')
    return text, [json.loads(line) for line in (found + lines).splitlines() if line]


@pytest.mark.req("U1")
def test_two_designs_meet_the_same_plan_and_every_measure_is_reported(own_servers: servers.Servers) -> None:
    text, lines = measured(own_servers, "checkpoint", "outlast")
    assert [line["design"] for line in lines] == ["checkpoint", "outlast"]
    assert text.count("\n| ") == 2 + len(lines)
    for line in lines:
        assert line["runs"] == RUNS
        assert 0 <= line["correct"] <= 1
        assert line["process_faults"] == len(faults.make(1, RUNS, 8.0).faults)
        assert line["faults"] >= line["process_faults"]
        assert line["manual_actions"] >= len(line["wrong"]) == RUNS - round(RUNS * line["correct"])
        assert line["cpu_per_run"] > 0
        assert line["statements_per_run"] > 0
        assert line["code_lines"] > 20
        assert {"duplicated", "orphans_per_100", "burden_per_1000", "latency_quiet", "latency_hit"} <= line.keys()
    assert lines[0]["messages_per_run"] == 0 < lines[1]["messages_per_run"]
    assert lines[1]["duplicated"] == 0


def test_one_seed_is_one_plan() -> None:
    plan = faults.make(7, 40, 90.0)
    assert plan == faults.make(7, 40, 90.0) != faults.make(8, 40, 90.0)
    assert {fault.kind for fault in plan.faults} == {"kill", "stop", "flush"}
    assert sum(run.cancel is not None for run in plan.runs) == 6
    assert not faults.make(7, 40, 90.0, rate=0).faults


def effect(verb: str, resource: str, second: int, run: str = "a") -> dict[str, Any]:
    return {"service": run, "verb": verb, "resource": resource, "at": f"1970-01-01T00:00:{second:02}+00:00"}


def judged(*effects: dict[str, Any], held: tuple[str, ...] = (), cancelled: float | None = None) -> judge.Judge:
    ledger = {"effects": effects, "summary": {"windows": list(held), "canaries": []}}
    return judge.Judge(ledger, [], {"a": 0.0}, {} if cancelled is None else {"a": cancelled}, [], set())


DONE = (effect("reserve", "w", 1), effect("canary", "d", 2), effect("promote", "d", 3), effect("release", "w", 4))


def test_what_is_right_is_read_from_the_ledger() -> None:
    assert judged(*DONE).is_right("a")
    assert judged(*DONE).figures()["latency_quiet"] == {"n": 1, "p50": 4.0, "p95": 4.0}
    assert judged(*DONE, cancelled=3.5).is_right("a"), "too late to cancel"
    assert not judged(*DONE, cancelled=2.5).is_right("a"), "promoted although nobody wanted it"
    assert judged(*DONE, effect("rollback", "d", 5), cancelled=2.5).is_right("a")
    assert not judged().is_right("a")
    assert judged(cancelled=1.0).is_right("a")


def test_what_is_left_behind_and_done_twice_is_counted() -> None:
    found = judged(effect("reserve", "lost", 0), *DONE, held=("lost",)).figures()
    assert (found["correct"], found["duplicated"], found["orphans_per_100"], found["manual_actions"]) == (0.0, 1, 100.0, 1)


def test_every_design_says_what_is_written_for_it() -> None:
    for side in sides.SIDES.values():
        assert side.title
        assert report.lines_of(side.written) > 20
