"""Ends a process at a numbered point: before and after each commit, and after each statement inside a transaction.

CHAOS_CRASH=record:FILE          the points are written to FILE, one a line
CHAOS_CRASH=at:NUMBER:FILE       the same, and SIGKILL at the point of that number (from 0)
CHAOS_CRASH=cut:NUMBER:FILE      as record, and the connection is lost at the point of that number, which is a call to the outside
CHAOS_CRASH=once:FOLDER:WHO      SIGKILL at every kind of point, each the first time that any process of the run meets it;
                                 FOLDER holds what was met, WHO is child (the process itself) or worker (its parent too)
    CHAOS_CRASH=each:KEY:FOLDER      SIGKILL at every point of the workflow of that key, each once: a point is known by its kind and by
                                     the node and activity that the record shows; FOLDER holds what was met
    CHAOS_CRASH=nodes:KEY:FOLDER     the same, by kind and node alone: for a way that goes round and round
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from flows.store import sql

VARIABLE = "CHAOS_CRASH"
#: Statements of the test kit: no product commits there.
NOT_OURS = {"movable clock", "move clock", "plain clock", "drop clock"}
#: Around a statement that only reads, nothing is different from before and after its neighbours.
READS = {
    "load",
    "read workflow",
    "doubts",
    "asked",
    "live requests",
    "newest requests",
    "lost work",
    "read running",
    "owner gone",
    "find request",
    "find call",
    "count calls",
    "calls of wait",
    "facts of request",
    "next timer",
    "now",
    "operation",
    "operations of workflow",
    "in flight",
    "standing",
    "obliged",
    "has deferred",
    "stuck commitments",
    "input",
    "budgets",
    "gate facts",
    "fan",
    "fans due",
    "fans of ending",
    "fans of waits",
    "uncounted",
    "branches",
    "children to stop",
    "open of workflow",
    "first of chain",
    "awaited children",
    "wake cause",
    "release fact",
    "current release",
    "offers",
    "journal",
    "turn stopped",
    "turn computed",
    "next moment",
    "under way",
}
#: A worker's own beginning is the same wherever the workflow stands.
BEGINNING = {"register worker", "bury workers", "start"}

#: Whoever is about to look for work has done nothing since the point before, and no code of an author ran between: it is the same point.
POLLS = {"claim", "look", "tick", "versions"}

Seam = Callable[[str, str], None]


def install_from_environment() -> None:
    if os.environ.get(VARIABLE):
        install(os.environ[VARIABLE])


def install(order: str) -> None:
    kind, _, rest = order.partition(":")
    if kind == "record":
        sql.seam = numbered(None, Path(rest))
    elif kind == "at":
        number, _, path = rest.partition(":")
        sql.seam = numbered(int(number), Path(path))
    elif kind == "cut":
        number, _, path = rest.partition(":")
        sql.seam = numbered(int(number), Path(path), lose)
    elif kind in ("each", "nodes"):
        key, _, folder = rest.partition(":")
        sql.seam = everywhere_once(Path(folder), key, activities=kind == "each")
    else:
        who, names, folder = rest.split(":", 2)
        sql.seam = first_time(Path(folder), set(filter(None, names.split(","))), whole_worker=who == "worker")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def lose() -> None:
    raise ConnectionResetError


def numbered(fatal: int | None, path: Path, end: Callable[[], None] = die) -> Seam:
    count = 0
    log = path.open("a", buffering=1)

    def seam(when: str, name: str) -> None:
        nonlocal count
        if name in NOT_OURS | READS or (when == "before" and name in POLLS):
            return
        log.write(f"{when} {name}\n")
        count += 1
        if count - 1 == fatal:
            end()

    return seam


def first_time(folder: Path, names: set[str], *, whole_worker: bool) -> Seam:
    """Statements of a worker's own life come from its parent; with WHO = child those are left alone."""
    began = os.getpid()

    def seam(when: str, name: str) -> None:
        is_parent = os.getpid() == began
        if (is_parent and not whole_worker) or (names and name not in names):
            return
        if not is_new(folder, f"{when} {name}"):
            return
        if whole_worker and not is_parent:
            os.kill(began, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    return seam


def everywhere_once(folder: Path, key: str, *, activities: bool) -> Seam:
    connection: psycopg.Connection[Any] | None = None

    def seam(when: str, name: str) -> None:
        nonlocal connection
        if name in NOT_OURS | READS | BEGINNING:
            return
        connection = connection or psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        found = connection.execute("SELECT node, activity_seq FROM outlast_workflow WHERE key = %s", [key]).fetchone()
        node, activity = found or ("none", 0)
        if is_new(folder, f"{when} {name} {node} {activity if activities else ''}"):
            os.kill(os.getpid(), signal.SIGKILL)

    return seam


def is_new(folder: Path, point: str) -> bool:
    """True for the first process that meets the point."""
    try:
        os.close(os.open(folder / point, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def points(path: Path) -> list[str]:
    """The points that were passed, the fatal one included."""
    return path.read_text().splitlines()
