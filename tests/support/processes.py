"""One test's world: an empty database on servers of our own, a folder, and real processes of the Procfile.

with Site(servers, folder, lease={...}) as site:
    worker = site.worker()
    run = site.start(Held)
    site.wait("the step", lambda: site.called("two/1"))
    worker.kill()
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.db import connections

import flows
from flows.core.fold import Difference
from flows.services import describe, replay
from project.dev import procs, servers
from project.dev.engines import ServerError
from project.settings import database_from_url
from tests.support.chaosapp import journal
from tests.support.chaosapp.flows import Load

ALIAS = "chaos"
SETTINGS = "tests.support.chaosapp.settings"
ROOT = Path(procs.ROOT)
#: The machine may be busy with other things: conditions are waited for, never slept through.
PATIENCE = 60.0


class Site:
    """Servers are shared by the tests of a session; database, key prefix, folder and processes are this test's own."""

    def __init__(self, running: servers.Servers, folder: Path, outlast: dict[str, Any] | None = None) -> None:
        self.servers, self.folder = running, folder
        self.name = f"test_chaos_{uuid.uuid4().hex[:10]}"
        self.url = another_database(running.database_url, self.name)
        self.outlast = outlast or {}
        self.procs = procs.Procs(env=self.environ(), log_dir=str(folder / "logs"))
        self._psycopg: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Self:
        folder = self.folder / "world"
        folder.mkdir(exist_ok=True)
        with psycopg.connect(another_database(self.servers.database_url, "postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{self.name}" TEMPLATE "{template(self.servers)}"')
        known = {name: value for name, value in connections.settings.items() if name != ALIAS}
        connections.settings = connections.configure_settings({**known, ALIAS: database_from_url(self.url)})
        self._broker = publishing_to(self.servers.redis_url, f"{self.name}:")
        self._broker.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.procs.stop(grace=0)
        self._broker.__exit__(None, None, None)
        connections[ALIAS].close()
        del connections[ALIAS]
        del connections.settings[ALIAS]
        if self._psycopg is not None:
            self._psycopg.close()

    def environ(self) -> dict[str, str]:
        return {
            **self.servers.environ(),
            "DATABASE_URL": self.url,
            "REDIS_KEY_PREFIX": f"{self.name}:",
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "CHAOS_OUTLAST": json.dumps(self.outlast),
        }

    # ------------------------------------------------------------------ processes

    def worker(self, name: str = "worker", *, ready: bool = True, **env: str) -> procs.Process:
        """A Celery worker; returns when it takes work."""
        process = self.procs.start("worker", name=name, env={"WORKER_NAME": name, "WORKER_CONCURRENCY": "2", **env})
        if ready:
            process.wait_for(r"ready\.", seconds=PATIENCE)
        return process

    def beat(self, name: str = "beat", **env: str) -> procs.Process:
        process = self.procs.start("beat", name=name, env=env)
        process.wait_for("beat: Starting", seconds=PATIENCE)
        return process

    def cleanup(self) -> procs.Process:
        process = self.procs.start("cleanup")
        process.wait_for(r"ready\.", seconds=PATIENCE)
        return process

    def start_server(self, name: str) -> None:
        """After a stop or a kill. Backends of a killed PostgreSQL need a moment to notice, and until then it cannot come back."""

        def started() -> bool:
            try:
                self.servers.start(name)
            except ServerError as error:
                if "still in use" not in str(error):
                    raise
                return False
            return True

        self.wait(f"{name} to start", started)

    # ------------------------------------------------------------------ work

    def start(self, flow: Any, input: dict[str, Any] | None = None, key: str | None = None) -> uuid.UUID:
        connections[ALIAS].health_check_done = False
        connections[ALIAS].close_if_health_check_failed()
        found: uuid.UUID = flow.start({"folder": str(self.world), **(input or {})}, key=key, using=ALIAS).id
        return found

    def start_many(self, flow: Any, inputs: list[dict[str, Any]]) -> list[uuid.UUID]:
        runs = [(f"{flow.definition.name}-{n}", {"folder": str(self.world), **more}) for n, more in enumerate(inputs)]
        return [run.id for run in flow.start_many(runs, using=ALIAS)]

    def answer_load(self, count: int) -> None:
        """The event that each run of `Load` waits for, delivered before or after it waits."""
        for number in range(count):
            key = f"{Load.definition.name}-{number}"
            flows.signal(f"{key}/heard", "chaos.load", key=key, payload={"n": number}, using=ALIAS)

    @property
    def world(self) -> Path:
        return self.folder / "world"

    def let_go(self, which: str = "") -> None:
        """What is held by `held` goes on: all, or the workflow of that key, or that node."""
        (self.world / (f"go-{which}" if which else "go")).touch()

    def called(self, operation: str) -> list[dict[str, Any]]:
        """The calls of that node/visit, over all workflows."""
        return [line for line in journal.read(self.world, journal.CALLED) if line["operation"].endswith(f"/{operation}")]

    # ------------------------------------------------------------------ looking

    def rows(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        """From a connection of the test's own; a server that is away is waited for."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self._psycopg is None:
                    self._psycopg = psycopg.connect(self.url, autocommit=True, connect_timeout=5)
                return self._psycopg.execute(query.encode(), params or None).fetchall()
            except psycopg.OperationalError:
                self._psycopg = None
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def status(self, run: uuid.UUID) -> tuple[str, str, str]:
        """Status, node, outcome."""
        found: tuple[str, str, str] = self.rows("SELECT status, node, outcome FROM outlast_workflow WHERE id = %s", run)[0]
        return found

    def is_complete(self, run: uuid.UUID) -> bool:
        return self.status(run)[0] == "complete"

    def open_runs(self) -> list[tuple[Any, ...]]:
        return self.rows("SELECT id, status, node, outcome, error_code FROM outlast_workflow WHERE status <> 'complete'")

    def attempts(self, run: uuid.UUID, node: str) -> list[str]:
        """How the attempts at a node ended, in order."""
        query = "SELECT outcome FROM outlast_attempt WHERE workflow_id = %s AND node = %s ORDER BY activity_seq, number"
        return [row[0] for row in self.rows(query, run, node)]

    def wait(self, what: str, holds: Callable[[], Any], seconds: float = PATIENCE) -> float:
        """Until it holds; the seconds that it took."""
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > seconds:
                raise AssertionError(f"waited {seconds} s for {what}\n{self.tails()}")
            time.sleep(0.02)
        return time.monotonic() - began

    def wait_ended(self, operation: str, count: int) -> None:
        """Until so many calls of that node/visit have returned, whatever became of their results."""

        def ended() -> bool:
            lines = journal.read(self.world, journal.ENDED)
            return sum(line["operation"].endswith(f"/{operation}") for line in lines) == count

        self.wait(f"the end of {operation}", ended)

    def wait_complete(self, *runs: uuid.UUID, seconds: float = PATIENCE) -> float:
        return self.wait("the end of the workflows", lambda: all(map(self.is_complete, runs)), seconds)

    def tails(self) -> str:
        """The last words of all processes, for a failed test."""
        found = [f"--- {name}\n" + "\n".join(p.output().splitlines()[-12:]) for name, p in self.procs.processes.items()]
        return "\n".join(found)

    def workers(self) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self.rows("SELECT name, status FROM outlast_worker ORDER BY started_at")]

    # ------------------------------------------------------------------ judging

    def assert_sound(self, expected: int | None = None) -> None:
        """All complete, each effect once, log equal to row, attempts numbered without a gap, nobody asked for help."""
        assert not self.open_runs(), self.tails()
        if expected is not None:
            assert self.rows("SELECT count(*) FROM outlast_workflow")[0][0] == expected
        done = [line["operation"] for line in journal.read(self.world, journal.DONE)]
        assert len(done) == len(set(done)), "an effect happened twice"
        assert not self.faults()
        assert not [found for found in replay.replay(using=ALIAS) if found.drift is not None]
        assert not self.rows("SELECT * FROM outlast_notice")
        assert not uneven_attempts(self.rows)

    def faults(self) -> list[Difference]:
        connections[ALIAS].close()
        return [fault for _, found in describe.verify(using=ALIAS) for fault in found]


def family(pid: int) -> list[int]:
    """The process and its children; empty if it is gone."""
    try:
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    except OSError:
        return []


def uneven_attempts(rows: Callable[[str], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Activities whose history is not 1, 2, …, n with the row's own count, or not ended by exactly one success where it is done."""
    return rows(
        """
        SELECT a.workflow_id, a.node, a.status, a.attempt, array_agg(t.number ORDER BY t.number), array_agg(t.outcome ORDER BY t.number)
        FROM outlast_activity a LEFT JOIN outlast_attempt t ON t.workflow_id = a.workflow_id AND t.activity_seq = a.seq
        WHERE a.status = 'done' AND a.step <> '(migrated)' GROUP BY a.workflow_id, a.seq  -- what a migration gave had no attempt
        HAVING array_agg(t.number ORDER BY t.number) <> ARRAY(SELECT generate_series(1, a.attempt))
            OR count(*) FILTER (WHERE t.outcome = 'succeeded') <> 1
            OR (array_agg(t.outcome ORDER BY t.number DESC))[1] <> 'succeeded'
        """
    )


def another_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def template(running: servers.Servers) -> str:
    """The database that the others are copied from: migrated once for these servers."""
    name = urlsplit(running.database_url).path.lstrip("/")
    mark = Path(running.folder, "migrated")
    if not mark.exists() or mark.read_text() != running.token:
        environment = {**os.environ, **running.environ(), "DJANGO_SETTINGS_MODULE": SETTINGS}
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, env=environment, check=True)
        mark.write_text(running.token)
    return name


@contextlib.contextmanager
def publishing_to(url: str, prefix: str) -> Iterator[None]:
    """This process's hints go to that broker."""
    from celery import current_app

    from tasks import linger

    conf = current_app.conf
    before = conf.broker_url, conf.broker_transport_options
    try:
        conf.update(broker_url=url, broker_transport_options={**(before[1] or {}), "global_keyprefix": prefix})
        current_app._after_fork()  # its pools of connections are made anew
        linger._client_of.cache_clear()
        linger._script_of.cache_clear()
        yield
    finally:
        conf.update(broker_url=before[0], broker_transport_options=before[1])
        current_app._after_fork()
        linger._client_of.cache_clear()
        linger._script_of.cache_clear()
