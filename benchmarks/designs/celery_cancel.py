"""A Celery task for each run, and a row that says what is wanted of it: looked at before each step, so a cancel outlives every worker.

Acknowledged late, as celery_late. Cancel: the row says so; the task takes back what it knows of. What failed six times has status failed.
"""

from __future__ import annotations

import os
from typing import Any

import psycopg
from celery import Celery

from benchmarks.designs import task
from benchmarks.designs.steps import deploy
from flows.errors import ActivityError

app = Celery("cancel", broker=os.environ[task.BROKER])
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": 10},
)
TABLE = "CREATE TABLE IF NOT EXISTS jobs (run text PRIMARY KEY, status text NOT NULL DEFAULT 'open')"
OPEN = ("open", "cancelling")


class Cancelled(Exception):
    """The row says that this run is not wanted any more."""


def status(run: str, new: str | None = None) -> str:
    """The row's status, changed first if `new` is given."""
    with psycopg.connect(os.environ[task.DATABASE], autocommit=True) as db:
        if new is not None:
            db.execute("UPDATE jobs SET status = %s WHERE run = %s", (new, run))
        row = db.execute("SELECT status FROM jobs WHERE run = %s", (run,)).fetchone()
        assert row is not None
        return str(row[0])


def submit(run: str) -> None:
    with psycopg.connect(os.environ[task.DATABASE], autocommit=True) as db:
        db.execute("INSERT INTO jobs (run) VALUES (%s) ON CONFLICT DO NOTHING", (run,))
    deploy_service.delay(run)


def cancel(run: str) -> None:
    with psycopg.connect(os.environ[task.DATABASE], autocommit=True) as db:
        db.execute("UPDATE jobs SET status = 'cancelling' WHERE run = %s AND status = 'open'", (run,))


class Job(app.Task):  # type: ignore[misc, name-defined]
    """A task whose last failure is written into its row."""

    def on_failure(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        status(args[0], "failed")


@app.task(name="deploy", base=Job, autoretry_for=(ActivityError,), max_retries=5, retry_backoff=1)
def deploy_service(run: str) -> None:
    def check() -> None:
        if status(run) == "cancelling":
            raise Cancelled

    if status(run) not in OPEN:
        return
    try:
        deploy(task.cloud(), run, check)
    except Cancelled:
        status(run, "cancelled")
    else:
        status(run, "done")
