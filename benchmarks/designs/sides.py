"""How the harness starts each design, hands it runs, cancels one, and asks it which runs it has given to a person. Nobody's own code."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.designs import task

ROOT = Path(__file__).resolve().parents[2]
HERE, FILES = "benchmarks.designs", "benchmarks/designs"
QUIETLY = "-c log_statement=none"  # what the harness itself asks is not counted
AGENT = "project/agents/deployment"
CELERY = "celery -A {app} worker -c 2 -n w{n}@%h --without-gossip --without-mingle -l WARNING"
WORKER = (
    "env REMAP_SIGTERM=SIGQUIT celery -A project worker -Q {queues} -n {name}@%h -c {size} --without-gossip --without-mingle"
    " --heartbeat-interval 10 -l WARNING"
)


@dataclass(frozen=True)
class Place:
    """Where one measurement happens."""

    folder: Path
    database: str
    cloud: str

    def run(self, statement: str) -> None:
        with psycopg.connect(self.database, autocommit=True, options=QUIETLY) as db:
            db.execute(statement)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database, autocommit=True, options=QUIETLY) as db:
            return db.execute(statement).fetchall()


class Side:
    """A design. `workers` meet the faults; `helpers` are processes besides; `written` is what a user writes, and what is counted."""

    title, keys = "", "a new one for each call"
    written: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()

    def __init__(self, place: Place) -> None:
        self.place = place
        self.prepare()

    def prepare(self) -> None:
        """Before its processes start."""

    def submit(self, run: str) -> None:
        raise NotImplementedError

    def cancel(self, run: str) -> None:
        raise NotImplementedError

    def asks_a_person(self) -> set[str]:
        """The runs that this design itself has put before a person."""
        return set()

    def unfinished(self) -> int:
        """Of those that it has a record of."""
        return 0

    def record_of(self, run: str) -> str:
        """What the design itself knows of a run, for whoever looks into one that went wrong."""
        return "no record"


class Single(Side):
    title = "one process"
    written: tuple[str, ...] = (f"{FILES}/single", f"{FILES}/steps")
    workers = (f"python -m {HERE}.single",)

    def _note(self, file: str, run: str) -> None:
        with (self.place.folder / file).open("a") as out:
            out.write(json.dumps(run) + "\n")

    def submit(self, run: str) -> None:
        self._note("runs.jsonl", run)

    def cancel(self, run: str) -> None:
        self._note("struck.jsonl", run)

    def asks_a_person(self) -> set[str]:
        return set(task.read_lines(self.place.folder / "failed.jsonl"))


class Plain(Side):
    title = "Celery"
    module = "celery_plain"
    written: tuple[str, ...] = (f"{FILES}/celery_plain", f"{FILES}/steps")
    workers = tuple(CELERY.format(app=f"{HERE}.celery_plain", n=n) for n in range(2))

    def prepare(self) -> None:
        self.code = importlib.import_module(f"{HERE}.{self.module}")
        self.tasks: dict[str, Any] = {}

    def submit(self, run: str) -> None:
        self.tasks[run] = self.code.deploy_service.delay(run)

    def cancel(self, run: str) -> None:
        self.tasks[run].revoke(terminate=True)

    def asks_a_person(self) -> set[str]:
        return {run for run, result in self.tasks.items() if result.state == "FAILURE"}


class Late(Plain):
    title = "Celery, acks late"
    module = "celery_late"
    written: tuple[str, ...] = (f"{FILES}/celery_late", f"{FILES}/celery_plain", f"{FILES}/steps")
    workers = tuple(CELERY.format(app=f"{HERE}.celery_late", n=n) for n in range(2))


class Rows(Side):
    """A design with a table of its own."""

    module = table = ""

    def prepare(self) -> None:
        self.code = importlib.import_module(f"{HERE}.{self.module}")
        self.place.run(self.code.TABLE)

    def submit(self, run: str) -> None:
        self.code.submit(run)

    def cancel(self, run: str) -> None:
        self.code.cancel(run)

    def asks_a_person(self) -> set[str]:
        return {row[0] for row in self.place.rows(f"SELECT run FROM {self.table} WHERE status = 'failed'")}

    def unfinished(self) -> int:
        return int(self.place.rows(f"SELECT count(*) FROM {self.table} WHERE status IN ('open', 'cancelling')")[0][0])

    def record_of(self, run: str) -> str:
        return str(self.place.rows(f"SELECT * FROM {self.table} WHERE run = '{run}'"))


class DurableCancel(Rows):
    title = "Celery, durable cancel"
    module, table = "celery_cancel", "jobs"
    written: tuple[str, ...] = (f"{FILES}/celery_cancel", f"{FILES}/steps")
    workers = tuple(CELERY.format(app=f"{HERE}.celery_cancel", n=n) for n in range(2))


class Checkpoint(Rows):
    title = "checkpoint/restart"
    module, table = "checkpoint", "checkpoints"
    written: tuple[str, ...] = (f"{FILES}/checkpoint",)
    workers = (f"python -m {HERE}.checkpoint",) * 2


class CheckpointKeys(Checkpoint):
    title = "checkpoint/restart, keys"
    keys = "run and step"
    written: tuple[str, ...] = (f"{FILES}/checkpoint", f"{FILES}/checkpoint_keys")
    workers = (f"python -m {HERE}.checkpoint_keys",) * 2


class Plainly(Side):
    title = "Outlast, the same steps"
    keys = "the recorded operation id"
    written: tuple[str, ...] = (f"{FILES}/flows",)
    workers = tuple(WORKER.format(queues="control,agents", name=f"w{n}", size=2) for n in range(2))
    helpers: tuple[str, ...] = (
        WORKER.format(queues="cleanup,control", name="cleanup", size=1),
        "celery -A project beat -l WARNING",
    )

    def prepare(self) -> None:
        import django

        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, check=True)
        django.setup()
        import project.celery  # noqa: F401 - the app that hints are published through

        self.ids: dict[str, Any] = {}
        self.flow = self.load()

    def load(self) -> Any:
        from benchmarks.designs.flows import DeployPlainly

        return DeployPlainly

    def given(self, run: str) -> dict[str, Any]:
        return {"run": run}

    def submit(self, run: str) -> None:
        self.ids[run] = self.flow.start(self.given(run), key=run).id

    def cancel(self, run: str) -> None:
        import flows

        flows.cancel(self.ids[run])

    def asks_a_person(self) -> set[str]:
        found = "outcome LIKE 'HUMAN_REQUIRED%' OR outcome LIKE 'POLICY_BLOCKED%' OR status = 'failed'"
        return {row[0] for row in self.place.rows(f"SELECT key FROM outlast_workflow WHERE {found}")}

    def unfinished(self) -> int:
        over = "('complete', 'failed', 'cancelled', 'superseded')"
        return int(self.place.rows(f"SELECT count(*) FROM outlast_workflow WHERE status NOT IN {over}")[0][0])

    def record_of(self, run: str) -> str:
        workflow = f"FROM outlast_workflow w WHERE key = '{run}'"
        operations = "SELECT array_agg(o.id || ' ' || o.status || ' ' || coalesce(o.error_code, '') || ' looks ' || o.looks)"
        return str(
            self.place.rows(
                f"SELECT status, outcome, node, ({operations} FROM outlast_operation o WHERE workflow_id = w.id) {workflow}"
            )
        )


class Agent(Plainly):
    title = "Outlast, the deployment agent"
    written = tuple(f"{AGENT}/{name}" for name in ("flows", "activities", "servicing", "policy", "relay"))
    helpers = (*Plainly.helpers, "python -m project.agents.deployment.relay --cloud $DESIGNS_CLOUD")

    def load(self) -> Any:
        from project.agents.deployment.flows import DeployService

        return DeployService

    def given(self, run: str) -> dict[str, Any]:
        return {"service": run, "version": task.VERSION, "cloud": self.place.cloud, "minutes": task.MINUTES, "opens_in": 0}


SIDES: dict[str, type[Side]] = {
    "single": Single,
    "celery": Plain,
    "celery-late": Late,
    "celery-cancel": DurableCancel,
    "checkpoint": Checkpoint,
    "checkpoint-keys": CheckpointKeys,
    "outlast": Plainly,
    "outlast-agent": Agent,
}
