"""Deployments against a faulty cloud, with workers killed all the time; then the cloud's own ledger is asked what really happened.

make chaos                          500 deployments, at most five minutes
make chaos N=100 DURATION=60 SEED=7

Every few seconds a worker (sometimes the cleanup worker) gets SIGKILL with all its children and is started again. The cloud loses answers, fails
after doing what it was asked, is slow, and lists events twice. Some deployments are cancelled at a random moment, some overtaken by a new goal.
The last line is JSON: runs, duplicated, lost, live_commitments, unfinished, verify (differences between log and row), seed.
Exit code 0: of these, all but runs and seed are 0.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from project.dev import demo_setup, engines, procs
from project.dev.demo_setup import DemoError

#: What the cloud does wrong, as shares of the requests.
FAULTS = {
    "lose_response": 0.10,
    "error_after": 0.03,
    "error_before": 0.03,
    "slow": 0.05,
    "slow_seconds": 0.3,
    "duplicate_events": 0.2,
}
WORKERS = ("worker-a", "worker-b", "cleanup")
#: Seconds between two kills.
KILLS = (2.0, 5.0)
CANCELLED = SUPERSEDED = 0.05
#: The last part of the time is left to whatever is still to be done, without kills.
QUIET_SHARE = 0.25
GRACE = 5


@dataclass
class Plan:
    """What is done to whom, and when; from the seed alone."""

    count: int
    seconds: float
    seed: int
    dice: random.Random = field(init=False)
    strokes: list[tuple[float, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = random.Random(f"chaos/{self.seed}")
        numbers = list(range(self.count))
        self.dice.shuffle(numbers)
        few = max(1, round(self.count * CANCELLED)) if self.count > 1 else 0
        span = min(self.seconds * (1 - QUIET_SHARE), 10 + self.count / 10)  # while most of them are under way
        for verb, chosen in (("cancel", numbers[:few]), ("supersede", numbers[few : 2 * few])):
            self.strokes += [(self.dice.random() * span, verb, number) for number in chosen]
        self.strokes.sort(reverse=True)


class Run:
    """One chaos run: its processes, its deployments, and what was done to them."""

    def __init__(self, running: procs.Procs, cloud: Any, plan: Plan) -> None:
        self.running, self.cloud, self.plan = running, cloud, plan
        self.began = time.monotonic()
        self.kills = 0
        self.answers: dict[str, int] = {}
        self.ids: list[UUID] = []
        self.next_kill = 0.0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def start_processes(self, relay: list[str]) -> None:
        self.running.commands["relay"] = shlex.join(relay)
        for name in WORKERS:
            self.start_worker(name)
        self.running.start("beat")
        self.running.start("relay")

    def start_worker(self, name: str) -> None:
        kind = "cleanup" if name == "cleanup" else "worker"
        self.running.start(kind, name=name, env={"WORKER_NAME": name, "WORKER_CONCURRENCY": "2"})

    def tell(self) -> dict[str, Any]:
        """Until nothing is left to do, or the time is over; what became of it."""
        from project.agents.deployment.campaign import start_many

        self.ids = start_many(self.plan.count, self.cloud.client(), self.plan.seed)
        say(f"{self.plan.count} deployments were started, seed {self.plan.seed}")
        self.began, self.next_kill = time.monotonic(), KILLS[0]
        told = 0.0
        while self.elapsed < self.plan.seconds:
            self.stroke()
            left = self.left()
            if not left and not self.plan.strokes:
                break
            if self.elapsed > told:
                say(f"{left} under way, {self.kills} kills")
                told += 10
            time.sleep(0.1)
        return self.found()

    def stroke(self) -> None:
        """Kill, cancel and supersede what is due."""
        while self.plan.strokes and self.plan.strokes[-1][0] <= self.elapsed:
            _, verb, number = self.plan.strokes.pop()
            self.act(verb, self.ids[number])
        if self.next_kill <= self.elapsed < self.plan.seconds * (1 - QUIET_SHARE):
            name = self.plan.dice.choice(WORKERS)
            self.running.processes[name].kill()
            self.start_worker(name)
            self.kills += 1
            self.next_kill = self.elapsed + self.plan.dice.uniform(*KILLS)
        for name, process in self.running.processes.items():
            if not process.is_alive():
                raise DemoError(f"{name} has ended by itself: see its log")

    def act(self, verb: str, run: UUID) -> None:
        import flows

        if verb == "cancel":
            answer = flows.cancel(run, reason="chaos").answer
        else:
            answer = flows.supersede(flows.get(run), goal="something else", reason="chaos").answer
        self.answers[f"{verb} {answer}"] = self.answers.get(f"{verb} {answer}", 0) + 1

    def left(self) -> int:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM outlast_workflow WHERE status NOT IN ('complete', 'failed', 'cancelled', 'superseded')"
            )
            return int(cursor.fetchone()[0])

    def found(self) -> dict[str, Any]:
        from flows.services.describe import verify
        from project.agents.deployment.campaign import judge

        self.cloud.client().faults()
        found = judge(self.cloud.client(timeout=30.0), self.ids)
        differences = [f"{run}: {one}" for run, faults in verify() for one in faults]
        lists = {name: found[name] for name in ("duplicated", "lost", "live_commitments", "unfinished")} | {"verify": differences}
        for name, texts in lists.items():
            for text in texts[:20]:
                say(f"{name}: {text}")
        return {
            "runs": found["runs"],
            **{name: len(texts) for name, texts in lists.items()},
            "seed": self.plan.seed,
            "seconds": round(self.elapsed, 1),
            "kills": self.kills,
            "answers": self.answers,
            "outcomes": found["outcomes"],
        }


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _: sys.exit(128 + caught))
    plan = Plan(asked("N", 500), asked("DURATION", 300), asked("SEED", 1))
    with demo_setup.own_folder("chaos") as folder:
        environment = {**demo_setup.own_servers(folder), "LOG_LEVEL": "WARNING"}
        demo_setup.start_django(environment)
        from project.agents.deployment.process import CloudProcess

        wrapper = engines.child("--signal", "9", "--")
        with (
            CloudProcess(folder / "cloud.db", seed=plan.seed, wrapper=wrapper) as cloud,
            procs.Procs(env=environment, log_dir=str(folder / "logs")) as running,
        ):
            cloud.client().faults(**FAULTS, seed=plan.seed)
            run = Run(running, cloud, plan)
            try:
                run.start_processes(relay_command(cloud.address, folder))
                result = run.tell()
            finally:
                running.stop(grace=GRACE)
        say(f"Logs: {os.path.relpath(folder / 'logs')}")
    print(json.dumps(result), flush=True)
    return 0 if not any(result[name] for name in ("duplicated", "lost", "live_commitments", "unfinished", "verify")) else 1


def relay_command(address: str, folder: Path) -> list[str]:
    return ["python", "-m", "project.agents.deployment.relay", "--cloud", address, "--cursor", str(folder / "cursor")]


def asked(name: str, usual: int) -> int:
    """A number from the environment, as `make` hands it over."""
    text = os.environ.get(name) or str(usual)
    if not text.isdigit():
        raise SystemExit(f"{name} is a whole number, and is {text!r}.")
    return int(text)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DemoError, engines.ServerError) as error:
        sys.exit(f"chaos: {error}")
