"""A row for each run with the last step that is done and what it made. A restart goes on from there.

Two of these processes share the rows; a session lock on a run ends with its holder. Keys: a new one for each call, because a checkpoint
is written after a step and does not know of a call before it. Cancel: a column, looked at before each step; then what the checkpoint
knows of is taken back. A step that failed eight times makes the run failed.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from benchmarks.designs import task
from flows.errors import ActivityError, StateConflict
from project.agents.deployment.client import Cloud

TABLE = """CREATE TABLE IF NOT EXISTS checkpoints (run text PRIMARY KEY, status text NOT NULL DEFAULT 'open',
    step text NOT NULL DEFAULT 'reserve', made jsonb NOT NULL DEFAULT '{}', cancel boolean NOT NULL DEFAULT false)"""
NEXT = {"reserve": "canary", "canary": "bake", "bake": "promote", "promote": "release", "rollback": "release"}
DONE = {"promote": "promoted", "release": "released", "rollback": "rolled_back"}
Key = Callable[[str, str], str]


def new_key(_run: str, _step: str) -> str:
    return str(uuid.uuid4())


def submit(run: str) -> None:
    with psycopg.connect(os.environ[task.DATABASE], autocommit=True) as db:
        db.execute("INSERT INTO checkpoints (run) VALUES (%s) ON CONFLICT DO NOTHING", (run,))


def cancel(run: str) -> None:
    with psycopg.connect(os.environ[task.DATABASE], autocommit=True) as db:
        db.execute("UPDATE checkpoints SET cancel = true WHERE run = %s AND status = 'open'", (run,))


def main(key: Key = new_key) -> None:
    cloud = task.cloud()
    with psycopg.connect(os.environ[task.DATABASE], autocommit=True, row_factory=dict_row) as db:
        while True:
            for row in db.execute("SELECT run FROM checkpoints WHERE status = 'open' ORDER BY run").fetchall():
                lock = (row["run"],)
                if db.execute("SELECT pg_try_advisory_lock(hashtext(%s)) AS got", lock).fetchone()["got"]:  # type: ignore[index]
                    work(db, cloud, row["run"], key)
                    db.execute("SELECT pg_advisory_unlock(hashtext(%s))", lock)
            time.sleep(0.05)


def work(db: Any, cloud: Cloud, run: str, key: Key) -> None:
    """From its checkpoint to its end."""
    failures = 0
    while True:
        row = db.execute("SELECT * FROM checkpoints WHERE run = %s", (run,)).fetchone()
        step, made = row["step"], row["made"]
        if row["status"] != "open":
            return
        if row["cancel"] and step not in ("rollback", "release"):
            step = "rollback" if "canary" in made else "release"
            if not made:
                save(db, run, step, made, "cancelled")
                return
        try:
            made = made | {step: do(cloud, run, step, made, key(run, step))}
            failures = 0
        except ActivityError as error:
            if isinstance(error, StateConflict) and error.details.get("state") == DONE.get(step):
                made = made | {step: "already"}
            else:
                failures += 1
                if failures == 8:
                    save(db, run, step, made, "failed")
                time.sleep(0.2)
                continue
        ended = "done" if "promote" in made else "cancelled"
        save(db, run, NEXT.get(step, step), made, ended if step == "release" else "open")


def save(db: Any, run: str, step: str, made: dict[str, Any], status: str) -> None:
    db.execute("UPDATE checkpoints SET step = %s, made = %s, status = %s WHERE run = %s", (step, Jsonb(made), status, run))


def do(cloud: Cloud, run: str, step: str, made: dict[str, Any], key: str) -> str:
    """One step; the id of what it made or changed."""
    if step == "reserve":
        return str(cloud.reserve(run, task.MINUTES, key=key)["id"])
    if step == "canary":
        return str(cloud.canary(run, task.VERSION, made["reserve"], key=key)["id"])
    if step == "release":
        return str(cloud.release(made["reserve"], key=key)["id"])
    if step == "bake":
        time.sleep(task.BAKE)
        return ""
    change = cloud.promote if step == "promote" else cloud.rollback
    return str(change(made["canary"], key=key)["id"])


if __name__ == "__main__":
    main()
