"""What an idle system costs: one worker and Beat, no web and no Flower."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.support.processes import Site

SECONDS = 30.0
MOST_STATEMENTS = 8.0  # the CPU is reported only: how fast a core is that has just been woken says nothing of the product
TICK = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> set[int]:
    """The process and all below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return set()
    return {pid}.union(*(tree(int(child)) for child in children))


def cpu_seconds(pids: set[int]) -> float:
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])  # with children that have ended
    return total / TICK


@pytest.mark.req("A7", "C3")
def test_an_idle_system_is_idle(site: Site, measured: Callable[[str, float], None]) -> None:
    worker, beat = site.worker(), site.beat()
    with psycopg.connect(site.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")
    log = Path(site.servers.pg_log)
    site.wait("the first logged statements", lambda: "outlast_tick" in log.read_text(errors="replace"))
    groups = {"worker": worker.pid, "beat": beat.pid, "postgres": site.servers.pg_pid, "redis": site.servers.redis_pid}
    before = {name: cpu_seconds(tree(pid)) for name, pid in groups.items()}
    began, offset = time.monotonic(), log.stat().st_size
    time.sleep(SECONDS)  # it is this span that is measured
    spent = time.monotonic() - began
    used = {name: cpu_seconds(tree(pid)) - before[name] for name, pid in groups.items()}
    with log.open(errors="replace") as file:
        file.seek(offset)
        statements = [found[1] for line in file if (found := re.search(r"(?:statement|execute [^:]*): (.*)", line))]
    for text, count in Counter(text[:70] for text in statements).most_common(8):
        measured(f"statements per second of {text.strip() or 'an arrow'}", count / spent)
    for name, seconds in used.items():
        measured(f"idle CPU of {name} in % of a core", 100 * seconds / spent)
    measured("idle CPU in all in % of a core", 100 * sum(used.values()) / spent)
    measured("idle statements per second", len(statements) / spent)
    with psycopg.connect(site.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM RESET log_statement")
        connection.execute("SELECT pg_reload_conf()")
    assert len(statements) / spent < MOST_STATEMENTS
