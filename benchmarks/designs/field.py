"""One design, measured: its processes, the cloud and the plan, for at most the plan's duration. Run by harness.py in a process of its own.

All processes are children of this one, in groups of their own, and end with it; the cloud, too.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import redis

from benchmarks.designs import judge
from benchmarks.designs.faults import Fault, Plan
from benchmarks.designs.sides import Side
from project.agents.deployment.client import Cloud
from project.dev import procs

TICK = os.sysconf("SC_CLK_TCK")
RESTART = 1.0  # seconds after which the supervisor starts again what has ended
WARM_UP, PATIENCE = 6, 60.0  # runs before the clock starts, so that all processes are there; seconds for them
QUIET = 11.0  # seconds without an effect, all runs right: longer than the visibility timeout and the lease


def cpu(pid: int | None) -> float:
    """Seconds of the process, of all below it, and of their children that have ended."""
    if not pid:
        return 0.0
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICK + sum(cpu(int(child)) for child in children)


@dataclass
class Servers:
    """What is counted on the servers; without their pids and log nothing is."""

    database: str
    broker: redis.Redis
    pg_pid: int = 0
    redis_pid: int = 0
    pg_log: str = ""
    begin: dict[str, float] = field(default_factory=dict)
    offset: int = 0

    def log_statements(self) -> None:
        """Of every connection to this database that begins after this."""
        with psycopg.connect(self.database, autocommit=True) as db:
            db.execute(f"ALTER DATABASE \"{db.info.dbname}\" SET log_statement = 'all'")

    def start_counting(self) -> None:
        self.offset = Path(self.pg_log).stat().st_size if self.pg_log else 0
        self.begin = self._now()

    def counted(self) -> dict[str, float | None]:
        found: dict[str, float | None] = {name: value - self.begin[name] for name, value in self._now().items()}
        if not self.pg_log:
            return {**found, "server_cpu": None, "statements": None}
        with Path(self.pg_log).open(errors="replace") as file:
            file.seek(self.offset)
            found["statements"] = sum(bool(re.search(r"LOG:  (?:statement|execute [^:]*): ", line)) for line in file)
        return found

    def _now(self) -> dict[str, float]:
        told: Any = self.broker.info("commandstats")
        sent = told.get("cmdstat_lpush", {}).get("calls", 0)
        return {"messages": float(sent), "server_cpu": cpu(self.pg_pid) + cpu(self.redis_pid)}


class Crew:
    """The processes of a design, and their supervisor."""

    def __init__(self, side: Side, folder: Path) -> None:
        self.procs = procs.Procs(env=dict(os.environ), log_dir=str(folder / "logs"))
        self.workers = [f"worker{n}" for n in range(len(side.workers))]
        names = [*self.workers, *(f"helper{n}" for n in range(len(side.helpers)))]
        self.procs.commands = dict(zip(names, (*side.workers, *side.helpers), strict=True))
        self.due: dict[str, float] = {}
        self.cpu = 0.0
        self.restarts = 0
        for name in names:
            self.procs.start(name)

    def look(self, now: float) -> None:
        """Starts again what has ended, a while ago."""
        for name, process in self.procs.processes.items():
            if not process.is_alive():
                process.end_group()
                self.due.setdefault(name, now + RESTART)
        for name in [name for name, moment in self.due.items() if moment <= now]:
            del self.due[name]
            self.restarts += 1
            self.procs.start(name)

    def kill(self, number: int) -> None:
        process = self._worker(number)
        self.cpu += cpu(process.pid)
        process.kill()

    def signal(self, number: int, sign: signal.Signals) -> None:
        process = self._worker(number)
        if process.is_alive():
            process.signal(sign, group=True)

    def _worker(self, number: int) -> Any:
        return self.procs.processes[self.workers[number % len(self.workers)]]

    def alive_cpu(self) -> float:
        return sum(cpu(process.pid) for process in self.procs.processes.values() if process.is_alive())

    def end(self) -> None:
        self.cpu += self.alive_cpu()
        self.procs.stop(grace=0)


class Field:
    """`measure` once; the record is what report.py needs."""

    def __init__(self, side: Side, plan: Plan, servers: Servers, cloud: Cloud) -> None:
        self.side, self.plan, self.servers, self.cloud = side, plan, servers, cloud
        self.asked: dict[str, float] = {}  # when each run was handed over, by the computer's clock
        self.cancelled: dict[str, float] = {}
        self.struck: list[tuple[float, float]] = []

    def measure(self) -> dict[str, Any]:
        self.servers.log_statements()
        self.crew = Crew(self.side, self.side.place.folder)
        try:
            self._warm_up()
            self.servers.start_counting()
            self.crew.cpu -= self.crew.alive_cpu()
            self.cloud.faults(seed=self.plan.seed, **self.plan.cloud)
            self.began = time.time()
            spent = self._run()
        finally:
            self.crew.end()
        counted = self.servers.counted()
        calls = [call for call in judge.read_calls(self.side.place.folder) if call["at"] >= self.began]
        verdict = judge.Judge(self.cloud.ledger(), calls, self.asked, self.cancelled, self.struck, self.side.asks_a_person())
        for run in sorted(verdict.wrong()):
            print(f"wrong: {verdict.story(run)}; {self.side.record_of(run)}", flush=True)
        return {**verdict.figures(), **self._cost(counted), "seconds": round(spent, 1), "restarts": self.crew.restarts}

    def _cost(self, counted: dict[str, float | None]) -> dict[str, float | None]:
        runs, servers = len(self.plan.runs), counted["server_cpu"]
        return {
            "cpu_per_run": None if servers is None else round((self.crew.cpu + servers) / runs, 3),
            "messages_per_run": _each(counted["messages"], runs),
            "statements_per_run": _each(counted["statements"], runs),
        }

    # ------------------------------------------------------------------ time

    def _warm_up(self) -> None:
        """Some runs on a good day, which are not judged: at their end all processes take work."""
        names = [f"warm-{number}" for number in range(WARM_UP)]
        for name in names:
            self.side.submit(name)
        deadline = time.monotonic() + PATIENCE
        while judge.Judge(self.cloud.ledger(), [], dict.fromkeys(names, 0.0), {}, [], set()).wrong():
            if time.monotonic() > deadline:
                raise TimeoutError("the first runs, without any fault, did not end")
            self.crew.look(time.monotonic())
            time.sleep(0.05)
        self.crew.due.clear()

    def _run(self) -> float:
        todo = sorted(self._schedule(), key=lambda entry: entry[0])
        began, looked = time.monotonic(), 0.0
        while (now := time.monotonic() - began) < self.plan.duration:
            while todo and todo[0][0] <= now:
                todo.pop(0)[1]()
            self.crew.look(now)
            if not todo and now - looked > 1.0:
                looked = now
                if self._is_over():
                    break
            time.sleep(0.02)
        return time.monotonic() - began

    def _schedule(self) -> list[tuple[float, Callable[[], None]]]:
        found: list[tuple[float, Callable[[], None]]] = []
        for run in self.plan.runs:
            found.append((run.start, lambda name=run.name: self._submit(name)))  # type: ignore[misc]
            if run.cancel is not None:
                found.append((run.cancel, lambda name=run.name: self._cancel(name)))  # type: ignore[misc]
        for fault in self.plan.faults:
            found.append((fault.at, lambda fault=fault: self._strike(fault)))  # type: ignore[misc]
            if fault.kind == "stop":
                found.append((fault.at + fault.seconds, lambda n=fault.worker: self.crew.signal(n, signal.SIGCONT)))  # type: ignore[misc]
        return found

    def _submit(self, run: str) -> None:
        """Again, where it is refused: after a flush the broker may not know its own queue."""
        self.asked[run] = time.time()
        for left in reversed(range(5)):
            try:
                self.side.submit(run)
                return
            except Exception as error:
                print(f"submit {run}: {type(error).__name__}: {error}", flush=True)
                if not left:
                    raise

    def _cancel(self, run: str) -> None:
        self.cancelled[run] = time.time()
        self.side.cancel(run)

    def _strike(self, fault: Fault) -> None:
        now = time.time()
        self.struck.append((now, now + fault.seconds))
        if fault.kind == "kill":
            self.crew.kill(fault.worker)
        elif fault.kind == "stop":
            self.crew.signal(fault.worker, signal.SIGSTOP)
        else:
            self.servers.broker.flushdb()

    def _is_over(self) -> bool:
        """All right at the cloud, nothing open in the design's own record, and nothing has moved for a while."""
        verdict = judge.Judge(self.cloud.ledger(), [], self.asked, self.cancelled, [], set())
        return not verdict.wrong() and verdict.last_effect() < time.time() - QUIET and not self.side.unfinished()


def _each(count: float | None, runs: int) -> float | None:
    return None if count is None else round(count / runs, 1)
