"""Outlast, as a project runs it: the Celery workers of benchmarks/project (its settings are the project's own) and Beat.

Workers are the Procfile's: prefork, queues control and agents, the settings of project/settings.py unchanged.  Beat is one process more
and counts as worker CPU and memory.  Run with the project's interpreter from the project's folder (run.py does).
variants: prefork = `-c conc` child processes in each worker (the default); threads = the threads pool of the same size.
W5 restarts the killed worker under the same name, as a supervisor does; Beat stays.
"""

import datetime
import os
import subprocess
import sys
from pathlib import Path

from common import (
    HOME,
    PG_HOST,
    PG_PORT,
    PG_USER,
    REDIS_HOST,
    REDIS_PASSWORD,
    REDIS_PORT,
    REDIS_URL,
    Peer,
)
from workloads import main

ROOT = Path(__file__).resolve().parents[2]
BEAT = -1  # the worker number that stands for Beat
FLOWS = {"w3": "bench-sleep", "w4": "bench-signal", "w5": "bench-tick"}


class Outlast(Peer):
    name = "outlast"
    variants = ("prefork", "threads")
    packages = ("django", "celery", "kombu", "redis", "psycopg")
    conc = 2
    redis_db = 3
    flows = None

    def environ(self):
        password = os.environ.get("PGPASSWORD", "")
        account = f"{PG_USER}:{password}" if password else PG_USER
        return dict(
            DATABASE_URL=f"postgresql://{account}@{PG_HOST}:{PG_PORT}/{self.db}",
            REDIS_URL=f"{REDIS_URL}/{self.redis_db}",
            DJANGO_SETTINGS_MODULE="benchmarks.project.settings",
            LOG_LEVEL="WARNING",
        )

    def settings(self):
        return dict(
            pool=self.a.variant,
            concurrency=self.conc,
            queues="control,agents",
            beat="one process",
            settings="project/settings.py",
            outlast="defaults",
        )

    def setup(self):
        self.redis().flushdb()
        env = {**os.environ, **self.environ()}
        cmd = [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
        subprocess.run(cmd, check=True, env=env, cwd=ROOT)
        self.kinds = {}
        self.load()

    def redis(self):
        import redis

        return redis.Redis(host=REDIS_HOST, port=REDIS_PORT, password=REDIS_PASSWORD or None, db=self.redis_db)

    def load(self):
        """Django in this process, as a web process has it; after a reset with a fresh connection."""
        if self.flows is None:
            os.environ.update(self.environ())
            sys.path.insert(0, str(ROOT))
            import django

            django.setup()
            import project.celery  # noqa: F401  the app that hints are published through
            from benchmarks.project.bench import flows

            self.flows = {
                c.definition.name: c for c in (flows.Bench3, flows.BenchTick, flows.BenchSleep, flows.BenchSignal)
            }
        from django.db import connections

        connections.close_all()

    # ---- the workers

    def start_workers(self):
        super().start_workers()
        self.start_worker(BEAT)

    def worker(self, i):
        celery = [sys.executable, "-m", "celery", "-A", "project"]
        if i == BEAT:
            schedule = f"{HOME}/beat-schedule"  # used by Celery's own scheduler only
            cmd = [*celery, "beat", "-l", "WARNING", "-s", schedule, "--pidfile="]
        else:
            pool = ["-P", "threads"] if self.a.variant == "threads" else []
            cmd = [*celery, "worker", "-Q", "control,agents", "-n", f"w{i}@%h", "-c", str(self.conc), *pool]
            cmd += ["-l", "WARNING", "--without-gossip", "--without-mingle", "--heartbeat-interval", "10"]
        os.chdir(ROOT)
        os.execve(sys.executable, cmd, {**os.environ, **self.environ()})

    # ---- the client

    def submit(self, kind, wids, due=None):
        from django.db import transaction

        name = FLOWS.get(kind, "bench3")
        flow = self.flows[name]
        extra = {} if due is None else {"due": datetime.datetime.fromtimestamp(due, datetime.UTC).isoformat()}
        self.kinds.update(dict.fromkeys(wids, name))
        if len(wids) == 1:
            flow.start({"wid": wids[0], **extra}, key=wids[0])
            return
        for i in range(0, len(wids), 500):
            with transaction.atomic():
                flow.start_many([(w, {"wid": w, **extra}) for w in wids[i : i + 500]])

    def signal(self, wids):
        import flows
        from django.db import transaction

        if len(wids) == 1:
            flows.signal(f"go-{wids[0]}", "go", key=wids[0], payload={"ok": True})
            return
        for i in range(0, len(wids), 100):
            with transaction.atomic():
                for w in wids[i : i + 100]:
                    flows.signal(f"go-{w}", "go", key=w, payload={"ok": True})

    def done_count(self):
        return self.sql("select count(*) from outlast_workflow where status='complete'")[0][0]

    def is_done(self, wid):
        rows = self.sql("select status from outlast_workflow where flow_name=%s and key=%s", self.kinds[wid], wid)
        return rows[0][0] == "complete"

    def asleep_count(self):
        return self.sql("select count(*) from outlast_workflow where status='waiting' and flow_name='bench-sleep'")[0][
            0
        ]

    def queued(self):
        r = self.redis()
        return {key.decode(): r.llen(key) for key in r.keys("*") if r.type(key) == b"list"}


if __name__ == "__main__":
    main(Outlast)
