"""`make growth`: a million steps are run by workers, then retention deletes all of it; sizes and vacuum in between.

    make growth                  a million steps
    make growth N=30000          fewer; the figures per step are much the same

The steps are those of `make replays` (three a workflow, some 200 bytes each), run by workers in two processes, on a server with its own
settings (autovacuum as it comes). On stdout one JSON line: bytes a step by table with indexes, what 10 million steps come to, dead rows that
autovacuum had left, seconds of a VACUUM of all tables, how many workflows a second retention deletes, and what is free again after it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.replaying.run import database

ROOT = Path(__file__).resolve().parents[2]
NAME = "bench_growth"
STEPS = 3
PROCESSES = 2
AHEAD = 2000
TARGET = 10_000_000
TABLES = """
SELECT c.relname, pg_total_relation_size(c.oid), pg_indexes_size(c.oid), coalesce(s.n_dead_tup, 0), coalesce(s.autovacuum_count, 0)
FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.relkind = 'r' AND c.relname LIKE 'outlast\\_%' ORDER BY 2 DESC
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="growth", description="How the record grows, and what is free again after retention.")
    parser.add_argument("--n", type=int, default=1_000_000, help="steps")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.replaying.settings"
    if options.work is not None:
        return work(options.work)
    address = os.environ["DATABASE_URL"] = database(NAME)
    setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    runs = options.n // STEPS // PROCESSES * PROCESSES
    say(f"{runs:,} workflows of {STEPS} steps")
    with psycopg.connect(address, autocommit=True) as watching:
        empty = sizes(watching)
        seconds = executed(runs)
        watching.execute("SELECT pg_stat_force_next_flush()")
        full = sizes(watching)
        dead, vacuums = sum(row["dead"] for row in full.values()), sum(row["vacuums"] for row in full.values())
        vacuum = vacuumed(watching)
        grown = {name: row["bytes"] - empty.get(name, row)["bytes"] for name, row in full.items()}
        say(f"{sum(grown.values()) / options.n:,.0f} bytes a step; deleting")
        deleted, took = delete()
        after = vacuumed(watching)
        left = sizes(watching)
        again = executed(max(PROCESSES, runs // 10))
        reused = sum(row["bytes"] for row in sizes(watching).values()) - sum(row["bytes"] for row in left.values())
    steps = runs * STEPS
    line = {
        "workload": "growth",
        "steps": steps,
        "steps_a_second": round(steps / seconds),
        "bytes_a_step": round(sum(grown.values()) / steps),
        "of_it_indexes": round(sum(row["indexes"] for row in full.values()) / sum(row["bytes"] for row in full.values()), 2),
        "by_table": {name: round(count / steps, 1) for name, count in grown.items() if count / steps >= 1},
        "gigabytes_of_10_million": round(sum(grown.values()) / steps * TARGET / 1e9, 1),
        "dead_rows_a_step": round(dead / steps, 3),
        "autovacuums": vacuums,
        "vacuum_seconds": round(vacuum, 1),
        "vacuum_seconds_of_10_million": round(vacuum * TARGET / steps, 1),
        "deleted": deleted,
        "deleted_a_second": round(deleted / took),
        "vacuum_seconds_after": round(after, 1),
        "bytes_left_for_reuse": sum(row["bytes"] for row in left.values()),
        "bytes_grown_by_the_next_tenth": reused,
        "ok": deleted == runs,
    }
    assert again > 0
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def setup() -> None:
    import django

    django.setup()
    logging.disable(logging.WARNING)


def executed(runs: int) -> float:
    """Run so many workflows in worker processes; the seconds that it took."""
    started = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.growth.run", "--work", str(runs // PROCESSES)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    working = [subprocess.Popen(command, cwd=ROOT, env=environment) for _ in range(PROCESSES)]
    failed = [process.wait() for process in working]
    if any(failed):
        raise SystemExit(f"a worker ended with {failed}")
    return time.monotonic() - started


def work(runs: int) -> int:
    """Start and run so many workflows here, a few thousand at a time."""
    setup()
    from benchmarks.replaying.flows import ReplayLine
    from flows.testing import local_worker

    with local_worker() as worker:
        worker.batch_size = 10
        for first in range(0, runs, AHEAD):
            ReplayLine.start_many([(None, {"number": first + number}) for number in range(min(AHEAD, runs - first))])
            worker.run()
    return 0


def sizes(connection: psycopg.Connection[Any]) -> dict[str, dict[str, int]]:
    """Bytes with indexes and TOAST, bytes of the indexes, dead rows and autovacuums, by table."""
    return {row[0]: {"bytes": row[1], "indexes": row[2], "dead": row[3], "vacuums": row[4]} for row in connection.execute(TABLES)}


def vacuumed(connection: psycopg.Connection[Any]) -> float:
    """Seconds of a VACUUM ANALYZE of every table of ours."""
    started = time.monotonic()
    for table in sizes(connection):
        connection.execute(f"VACUUM ANALYZE {table}")  # type: ignore[arg-type]
    return time.monotonic() - started


def delete() -> tuple[int, float]:
    """Retention, until nothing is left: (workflows, seconds)."""
    from flows.core.retention import Retention
    from flows.services.retention import looking

    started = time.monotonic()
    count = sum(found.deleted for found in looking.everything(Retention(days=1e-9), "default"))
    return count, time.monotonic() - started


def say(text: str) -> None:
    print(f"growth: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
