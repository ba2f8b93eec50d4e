"""`make recovery`: a provider comes back while 20,000 workflows wait for it, fails again in the middle, and comes back once more.

    make recovery              20,000 workflows: some ten minutes, most of it until all of them wait
    make recovery N=2000       fewer

Real processes: two workers with threads for the provider's queue, one for other work, one for the clock and the pump, Beat. What is measured
comes from the journal that the provider itself keeps. The last line is JSON, and `ok` says that all of this holds: the median of the full
seconds is at least 90 % of the rate, and none is over 115 %; never more calls are under way than the ceiling; the 99th percentile of other work
(20 ms each) is at most three times that beside an idle provider; a second failure stops it within 2 s; every workflow completes. A picture is
written to .outlast/recovery.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

ROOT = Path(__file__).resolve().parents[2]
NAME = "bench_recovery"
PICTURE = ROOT / ".outlast" / "recovery.svg"
#: Threads of each of the provider's workers: together more than its ceiling.
THREADS = 32
#: Seconds of the look at other work while the provider is down.
IDLE_SECONDS = 20
#: Other work begins so often a second.
OTHER_RATE = 10
STOP_BAR, RATIO_BAR, LEAST, MOST = 2.0, 3.0, 0.9, 1.15
QUIET = ["-l", "ERROR", "--without-gossip", "--without-mingle", "--heartbeat-interval", "10"]
WORKERS = {
    "provider": ["-Q", "provider", "-P", "threads", "-c", str(THREADS)],
    "provider-too": ["-Q", "provider", "-P", "threads", "-c", str(THREADS)],
    "other": ["-Q", "other", "-c", "2"],
    "clock": ["-Q", "control,cleanup", "-c", "1"],
}
COUNT = "SELECT count(*) FROM outlast_workflow WHERE flow_name = %s AND status = ANY (%s)"
LATENCY = """
SELECT extract(epoch FROM t.at - w.created_at)::float8 FROM outlast_workflow w
JOIN outlast_transition t ON t.workflow_id = w.id AND t.to_status = 'complete'
WHERE w.flow_name = 'recovery-other' AND w.created_at BETWEEN to_timestamp(%s) AND to_timestamp(%s)
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="recovery", description="How a dependency recovers with a backlog.")
    parser.add_argument("--n", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recovery-") as folder:
        os.environ |= {
            "DATABASE_URL": database(),
            "REDIS_KEY_PREFIX": f"{NAME}:",
            "DJANGO_SETTINGS_MODULE": "benchmarks.recovery.settings",
            "RECOVERY_FOLDER": folder,
            "LOG_LEVEL": "ERROR",
        }
        line = measure(options.n, Path(folder))
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def measure(count: int, folder: Path) -> dict[str, Any]:
    import django

    django.setup()
    from django.core.management import call_command

    import project.celery  # noqa: F401 - the app that hints are published through
    from benchmarks.recovery.flows import CEILING, RATE, RecoveryPay
    from flows import dependencies

    call_command("migrate", verbosity=0)
    record = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    dependencies.down("provider", reason="the benchmark begins")
    with processes(folder):
        say(f"{count} workflows begin to wait")
        for begin in range(0, count, 500):
            RecoveryPay.start_many([(f"r{number}", {}) for number in range(begin, min(begin + 500, count))])
        began = time.monotonic()
        wait(lambda: counted(record, "recovery-pay", "waiting") == count, 3600)
        say(f"all wait after {time.monotonic() - began:.0f} s")
        idle = others(lambda passed: passed > IDLE_SECONDS)
        say("the provider is back")
        moments = {"back": time.time()}
        dependencies.up("provider", reason="it is back")
        first = others(lambda _: counted(record, "recovery-pay", "complete") >= count * 0.4)
        say("it fails in the middle")
        moments["fails"] = time.time()
        (folder / "down").touch()
        wait(lambda: dependencies.show("provider").status == "down", 60)
        time.sleep(3)  # what would still begin is to be seen
        (folder / "down").unlink()
        moments["back again"] = time.time()
        dependencies.up("provider", reason="it is back again")
        second = others(lambda _: counted(record, "recovery-pay", "complete") >= count)
        wait(lambda: counted(record, "recovery-other", "running", "runnable", "waiting") == 0, 60)
    calls = journal(folder)
    found = figures(calls, moments, record, idle, [first, second])
    found |= {
        "workload": "recovery",
        "n": count,
        "rate": RATE,
        "ceiling": CEILING,
        "completed": counted(record, "recovery-pay", "complete"),
    }
    found["ok"] = bool(
        found["completed"] == count
        and found["rate_p50"] >= LEAST * RATE
        and found["rate_max"] <= MOST * RATE
        and found["under_way_max"] <= CEILING
        and found["stop_seconds"] <= STOP_BAR
        and found["ratio_p99"] <= RATIO_BAR
    )
    picture(calls, moments, RATE, CEILING)
    return found


def figures(
    calls: list[tuple[float, float, bool]],
    moments: dict[str, float],
    record: psycopg.Connection[Any],
    idle: tuple[float, float],
    busy: list[tuple[float, float]],
) -> dict[str, Any]:
    """What the journal and the record say."""
    seconds = per_second([began for began, _, well in calls if well], moments["back"])
    steady = full(seconds, moments)
    after = [began for began, _, _ in calls if moments["fails"] < began < moments["back again"]]
    p99 = [percentile(latencies(record, [span]), 99) for span in (idle, *busy)]
    return {
        "rate_p50": statistics.median(steady) if steady else 0,
        "rate_max": max(seconds, default=0),
        "steady_seconds": len(steady),
        "under_way_max": most_at_once(calls),
        "stop_seconds": round(max(after, default=moments["fails"]) - moments["fails"], 3),
        "calls_after_the_failure": len(after),
        "p99_idle": round(p99[0], 4),
        "p99_busy": round(max(p99[1:]), 4),
        "ratio_p99": round(max(p99[1:]) / p99[0], 2),
        "picture": str(PICTURE.relative_to(ROOT)),
    }


def full(seconds: list[int], moments: dict[str, float]) -> list[int]:
    """The seconds in which it went at its full rate: not those of a ramp, of the failure, and of the end."""
    back, fails, again = (moments[name] - moments["back"] for name in ("back", "fails", "back again"))
    ramp = 4
    return [
        count for second, count in enumerate(seconds[:-3]) if (back + ramp <= second < int(fails)) or (second >= again + ramp)
    ]


def per_second(moments: list[float], start: float) -> list[int]:
    counted = Counter(int(one - start) for one in moments if one >= start)
    return [counted[second] for second in range(max(counted, default=-1) + 1)]


def most_at_once(calls: list[tuple[float, float, bool]]) -> int:
    steps = sorted(
        [(began, 1) for began, _, _ in calls] + [(ended, -1) for _, ended, _ in calls], key=lambda one: (one[0], one[1])
    )
    level = most = 0
    for _, step in steps:
        level += step
        most = max(most, level)
    return most


def picture(calls: list[tuple[float, float, bool]], moments: dict[str, float], rate: float, ceiling: float) -> None:
    from benchmarks.recovery.plot import svg

    start = moments["back"]
    begun = per_second([began for began, _, well in calls if well], start)
    under_way = [
        most_at_once([one for one in calls if one[0] < start + second + 1 and one[1] >= start + second])
        for second in range(len(begun))
    ]
    PICTURE.parent.mkdir(exist_ok=True)
    marks = [(at - start, name) for name, at in moments.items()]
    PICTURE.write_text(svg(begun, under_way, rate, ceiling, marks))


def journal(folder: Path) -> list[tuple[float, float, bool]]:
    """(began, ended, well) of each call, as the provider wrote it."""
    lines = (folder / "calls").read_text().splitlines()
    return sorted((float(began), float(ended), how == "up") for began, ended, how in (line.split() for line in lines))


def others(done: Any) -> tuple[float, float]:
    """Begin other work until that is so; from when to when."""
    from benchmarks.recovery.flows import RecoveryOther

    began, start = time.time(), time.monotonic()
    number = 0
    while not done(time.monotonic() - start):
        RecoveryOther.start({})
        number += 1
        time.sleep(max(0.0, start + number / OTHER_RATE - time.monotonic()))
    return began, time.time()


def latencies(record: psycopg.Connection[Any], spans: list[tuple[float, float]]) -> list[float]:
    return [row[0] for span in spans for row in record.execute(LATENCY, span)]


def percentile(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def counted(record: psycopg.Connection[Any], flow: str, *statuses: str) -> int:
    return int(record.execute(COUNT, (flow, list(statuses))).fetchone()[0])  # type: ignore[index]


def wait(condition: Any, patience: float) -> None:
    ends = time.monotonic() + patience
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError("what was waited for did not come")
        time.sleep(0.05)


@contextmanager
def processes(folder: Path) -> Iterator[None]:
    """The workers and Beat, as a project runs them."""
    celery = [sys.executable, "-m", "celery", "-A", "project"]
    commands = [[*celery, "worker", *options, "-n", f"{name}@%h", *QUIET] for name, options in WORKERS.items()]
    commands.append([*celery, "beat", "-l", "ERROR", "-s", str(folder / "beat"), "--pidfile="])
    started = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    try:
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def database() -> str:
    """An empty database of its own on the server that the environment names."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME}")
        connection.execute(f"CREATE DATABASE {NAME}")
    return urlunsplit(parts._replace(path=f"/{NAME}"))


def say(text: str) -> None:
    print(f"recovery: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
