"""`make replays`: 10,000 recorded workflows, and `manage.py flows replay --all --json` over them.

    make replays                 10,000 workflows, three rounds
    make replays N=1000          fewer; the figure says less

On stdout one JSON line: workflows a minute (the median and each round, by the wall clock, the start of the process included), how much of it the
engine decided again, and the tables that were written meanwhile (none). The bar is 2,000 a minute. Exit code 1: something differed, was
written, or was too slow.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

ROOT = Path(__file__).resolve().parents[2]
BAR = 2000
NAME = "bench_replays"
#: A row that is written, even with the same values, is another version of it.
SUM = "SELECT coalesce(sum(hashtextextended(t.ctid::text || t.xmin::text || t::text, 0)), 0) FROM {table} t"


def main() -> int:
    parser = argparse.ArgumentParser(prog="replays", description="How fast recorded workflows are replayed.")
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    address = database()
    os.environ |= {"DATABASE_URL": address, "DJANGO_SETTINGS_MODULE": "benchmarks.replaying.settings"}
    say(f"recording {options.n} workflows")
    record(options.n)
    command = [sys.executable, "manage.py", "flows", "replay", "--all", "--json"]
    rates: list[float] = []
    found: dict[str, Any] = {}
    with psycopg.connect(address, autocommit=True) as watching:
        before = contents(watching)
        for number in range(options.rounds):
            started = time.monotonic()
            ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            rates.append(60 * options.n / (time.monotonic() - started))
            say(f"round {number + 1}: {rates[-1]:,.0f} a minute; {ran.stderr.strip()}")
            if ran.returncode:
                return 1
            found = json.loads(ran.stdout)
        after = contents(watching)
    rate = statistics.median(rates)
    line = {
        "workload": "replay",
        "figure": "workflows a minute",
        "ours": round(rate),
        "all": [round(one) for one in rates],
        "checked": found["checked"],
        "arrows": found["arrows"],
        "decided": found["decided"],
        "differences": len(found["differences"]),
        "tables_written": sorted(table for table in after if after[table] != before.get(table)),
        "bar": BAR,
        "ok": rate >= BAR and after == before and found["checked"] == options.n,
    }
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def database(name: str = NAME) -> str:
    """An empty database of its own on the server that the environment names."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
    return urlunsplit(parts._replace(path=f"/{name}"))


def contents(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """A sum over every row of every table, as it lies there."""
    tables = [row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    return {table: connection.execute(SUM.format(table=f'"{table}"')).fetchone()[0] for table in tables}  # type: ignore[index]


def record(count: int) -> None:
    """Workflows of four kinds, brought to their end by a worker in this process."""
    import django

    django.setup()
    logging.disable(logging.WARNING)  # an activity that fails once is logged, five thousand times
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group, Permission
    from django.core.management import call_command

    import flows
    from approvals.api import decide
    from approvals.models import Request
    from benchmarks.replaying.flows import ROLE, ReplayApproved, ReplayLine, ReplayPipe, ReplayRound
    from flows.models import Workflow
    from flows.testing import local_worker

    call_command("migrate", verbosity=0)
    user = get_user_model().objects.create_user("reviewer", is_staff=True)
    user.groups.add(Group.objects.create(name=ROLE))
    user.user_permissions.add(Permission.objects.get(codename="answer_request"))
    tenth = count // 10
    ReplayApproved.start_many([(None, {}) for _ in range(tenth)])
    ReplayPipe.start_many([(None, {}) for _ in range(2 * tenth)])
    ReplayRound.start_many([(f"k{number}", {}) for number in range(3 * tenth)])
    ReplayLine.start_many([(None, {}) for _ in range(count - 6 * tenth)])
    with local_worker() as worker:
        worker.batch_size = 10
        worker.run()
        for number in range(3 * tenth):
            flows.signal(f"e{number}", "replay.asked", key=f"k{number}", payload={"says": "yes"})
        for verdict in ("changes", "approve"):
            pending = Request.objects.filter(status="pending")
            for request in pending if verdict == "approve" else pending[: tenth // 2]:
                decide(request, verdict=verdict, digest=request.digest, by=user, comment="once more")
            worker.tick()
            worker.run()
    assert not Workflow.objects.exclude(status="complete").exists()


def say(text: str) -> None:
    print(f"replays: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
