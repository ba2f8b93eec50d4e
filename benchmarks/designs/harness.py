"""`make designs`: the same task on the same faults, with simpler designs and with Outlast.

    make designs                                             all designs, 60 runs, 90 s each
    make designs RUNS=20 SEED=7 DESIGNS=checkpoint,outlast   a part
    make designs FAULTS=0                                    a quiet day: cancels only; 2: twice as many faults
    make designs DURATION=120                                seconds for each design

Progress goes to stderr. On stdout: a table, then one JSON line per design. Exit code: 0, or 1 if a measurement failed; what a
design does under faults is a result, not a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis

from benchmarks.designs import faults, report, task
from benchmarks.designs.field import Field, Servers
from benchmarks.designs.sides import ROOT, SIDES, Place, Plainly
from benchmarks.lab import Lab, opened
from project.agents.deployment.process import CloudProcess
from project.dev import engines

BROKER_DATABASE = 5  # of Valkey's sixteen: a flush empties no other
SPARE = 90.0  # seconds beside the duration, for preparing and ending


def main() -> int:
    options = read_options()
    if options.one:
        return measure_one(options)
    lines = []
    with opened() as lab:
        for name in options.designs:
            say(name)
            lines.append(report.line(name, measured(lab, name, options), plan_of(options)))
        print(f"\n{os.cpu_count()} CPUs, {platform.machine()}, Python {platform.python_version()}; {plan_of(options)}\n")
    print(report.table(lines) + "\n")
    for line in lines:
        print(json.dumps(line))
    return 1 if any(line.get("error") for line in lines) else 0


def read_options() -> argparse.Namespace:
    def designs(text: str) -> list[str]:
        found = [name for name in text.split(",") if name]
        if unknown := set(found) - set(SIDES):
            raise argparse.ArgumentTypeError(f"not known: {', '.join(sorted(unknown))}; there are {', '.join(SIDES)}")
        return found

    parser = argparse.ArgumentParser(prog="designs", description="Outlast beside simpler designs, on the same faults.")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=float, default=1.0, metavar="RATE")
    parser.add_argument("--duration", type=float, default=90.0, metavar="SECONDS")
    parser.add_argument("--designs", type=designs, default=list(SIDES), help=",".join(SIDES))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.runs < 1 or options.faults < 0 or options.duration <= 0:
        parser.error("runs and duration are more than 0, faults is 0 or more")
    return options


def plan_of(options: argparse.Namespace) -> dict[str, Any]:
    return {"seed": options.seed, "rate": options.faults, "duration": options.duration}


# ---------------------------------------------------------------------- one design, in a process of its own


def measured(lab: Lab, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The record of one design; an error, if there is none."""
    with tempfile.TemporaryDirectory(prefix="designs-") as folder, database(lab, name) as url:
        out = Path(folder, "record.json")
        command = [sys.executable, "-m", "benchmarks.designs.harness", "--one", name, "--out", str(out)]
        command += ["--runs", str(options.runs), "--seed", str(options.seed)]
        command += ["--faults", str(options.faults), "--duration", str(options.duration)]
        code = run(command, environment(lab, name, url, folder), options.duration + SPARE)
        if out.exists():
            found: dict[str, Any] = json.loads(out.read_text())
            return found
        for log in sorted(Path(folder, "logs").glob("*.log")):
            say(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-8:]))
        return {"error": f"exit code {code}"}


def environment(lab: Lab, name: str, url: str, folder: str) -> dict[str, str]:
    broker = urlunsplit(urlsplit(lab.environ["REDIS_URL"])._replace(path=f"/{BROKER_DATABASE}"))
    kept = {key: value for key, value in lab.environ.items() if key not in ("PYTHONPATH", "REDIS_KEY_PREFIX")}
    told = {task.DATABASE: url, task.BROKER: broker, task.FOLDER: folder, "DATABASE_URL": url, "REDIS_URL": broker}
    # Empty and not absent: importing `project` would set it, and then each Celery app here would become a Django project.
    settings = "benchmarks.designs.settings" if issubclass(SIDES[name], Plainly) else ""
    return {**kept, **told, "DJANGO_SETTINGS_MODULE": settings, "LOG_LEVEL": "WARNING"}


@contextlib.contextmanager
def database(lab: Lab, name: str) -> Iterator[str]:
    """An empty one, dropped afterwards."""
    given = lab.environ["DATABASE_URL"]
    made = f"designs_{name.replace('-', '_')}_{os.getpid()}"
    with psycopg.connect(given, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {made}")
        try:
            yield urlunsplit(urlsplit(given)._replace(path=f"/{made}"))
        finally:
            db.execute(f"DROP DATABASE IF EXISTS {made} WITH (FORCE)")


def run(command: list[str], environ: dict[str, str], seconds: float) -> int | str:
    """The exit code. Too slow, or this process told to end: it is told to end, and takes what it has started along."""
    wrapper = engines.child("--signal", str(int(signal.SIGTERM)), "--")
    process = subprocess.Popen([*wrapper, *command], env=environ, cwd=ROOT, stdout=sys.stderr)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"none within {seconds:.0f} s"
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


def measure_one(options: argparse.Namespace) -> int:
    folder = Path(os.environ[task.FOLDER])
    told = json.loads(Path(os.environ["BENCH_HOME"], "servers.json").read_text())
    broker = redis.Redis.from_url(os.environ[task.BROKER])
    servers = Servers(os.environ[task.DATABASE], broker, told["pg_pid"], told["redis_pid"], told["pg_log"])
    plan = faults.make(options.seed, options.runs, options.duration, options.faults)
    with CloudProcess(folder / "cloud.db", seed=options.seed, wrapper=engines.child("--signal", "9", "--")) as cloud:
        os.environ[task.CLOUD] = cloud.address
        broker.flushdb()
        side = SIDES[options.one](Place(folder, os.environ[task.DATABASE], cloud.address))
        record = Field(side, plan, servers, cloud.client(timeout=10)).measure()
    options.out.write_text(json.dumps(record))
    say(f"{options.one}: {time.strftime('%X')} {json.dumps(record)}")
    return 0


def told_to_end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def say(text: str) -> None:
    print(f"designs: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, told_to_end)
    sys.exit(main())
