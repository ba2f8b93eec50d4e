"""Each kind of orphan, and a system that has none.

make sabotage                       every kind, then five minutes under full load
make sabotage N=500 DURATION=60     so many deployments, so long

First the record is broken in each way that the scan for orphans knows, behind all guards (tests/db/test_sabotage.py and that of requests):
one scan finds it, it is mended or shown, and nothing else is touched. Then workers and Beat bring deployments to their end, as fast as they
can, all the time: whenever a half of them has ended, as many are started anew. Nobody is killed; every few seconds the record is scanned. The
last line is JSON: kinds, broken (exit code of the tests), runs, ended, scans, slowest (seconds of one scan), findings, problems. Exit code 0:
the tests pass, nothing was found, every kind was looked for each time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import Any

from project.dev import demo_setup, engines, procs
from project.dev.chaos import GRACE, Plan, Run, asked, relay_command, say
from project.dev.demo_setup import DemoError

TESTS = ("tests/db/test_sabotage.py", "tests/db/approvals/test_adrift.py")
#: Seconds between two scans of this process; the clock of the workers scans as well, as it does anywhere.
BETWEEN = 3.0


class Healthy(Run):
    """Deployments that nobody disturbs, and what a scan finds meanwhile."""

    def watch(self) -> dict[str, Any]:
        from flows.models import Finding
        from flows.services.liveness import scanning
        from project.agents.deployment.campaign import start_many

        self.began, scans, slowest, problems, left = time.monotonic(), 0, 0.0, [], 0
        while self.elapsed < self.plan.seconds:
            self.stroke()
            if left <= self.plan.count / 2:  # full load, from the first to the last second
                missing = self.plan.count - left
                self.ids += start_many(missing, self.cloud.client(), self.plan.seed, first=len(self.ids))
                say(f"{missing} deployments were started; nobody is killed")
            done = scanning.scan(repair=False)
            scans, slowest = scans + 1, max(slowest, sum(one.seconds for one in done))
            problems += [f"{one.kind}: {one.problem}" for one in done if one.problem]
            left = self.left()
            if scans % 10 == 1:
                say(f"{left} under way, {scans} scans")
            time.sleep(BETWEEN)
        found = [f"{one.kind} {one.subject} {json.dumps(one.facts)}" for one in Finding.objects.order_by("pk")]
        for text in found[:20]:
            say(f"found: {text}")
        return {
            "runs": len(self.ids),
            "ended": len(self.ids) - self.left(),
            "seconds": round(self.elapsed, 1),
            "scans": scans,
            "slowest": round(slowest, 3),
            "findings": len(found),
            "problems": sorted(set(problems)),
        }

    def stroke(self) -> None:
        """Nothing is done to anybody."""
        for name, process in self.running.processes.items():
            if not process.is_alive():
                raise DemoError(f"{name} has ended by itself: see its log")


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _: sys.exit(128 + caught))
    broken = subprocess.call([sys.executable, "-m", "pytest", "-q", "-n", "0", *TESTS], stdout=sys.stderr)
    plan = Plan(asked("N", 1500), asked("DURATION", 300), asked("SEED", 1))
    plan.strokes, plan.dice = [], random.Random(plan.seed)
    with demo_setup.own_folder("sabotage") as folder:
        environment = {**demo_setup.own_servers(folder), "LOG_LEVEL": "WARNING"}
        demo_setup.start_django(environment)
        from flows.core.liveness import KINDS
        from project.agents.deployment.process import CloudProcess

        with (
            CloudProcess(folder / "cloud.db", seed=plan.seed, wrapper=engines.child("--signal", "9", "--")) as cloud,
            procs.Procs(env=environment, log_dir=str(folder / "logs")) as running,
        ):
            run = Healthy(running, cloud, plan)
            try:
                run.start_processes(relay_command(cloud.address, folder))
                result = run.watch()
            finally:
                running.stop(grace=GRACE)
        say(f"Logs: {os.path.relpath(folder / 'logs')}")
    print(json.dumps({"kinds": len(KINDS), "broken": broken, **result}), flush=True)
    return 0 if not (broken or result["findings"] or result["problems"]) and result["scans"] else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DemoError, engines.ServerError) as error:
        sys.exit(f"sabotage: {error}")
