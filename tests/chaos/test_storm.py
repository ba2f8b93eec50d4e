"""Everything at once: for a while something is killed, frozen, restarted or wiped at every moment, under load. Then all work has ended right."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable

import pytest
import redis

from tests.support.chaosapp.flows import Fatal, Load
from tests.support.measuring import assert_measured
from tests.support.processes import ALIAS, Site, family

COUNT, FATAL, BLOWS = 100, 5, int(os.environ.get("CHAOS_BLOWS", "10"))
SEED = int(os.environ.get("CHAOS_SEED", "0")) or random.randrange(1, 10**6)


class Storm:
    """Processes that are started again whenever they have ended, and blows against them and their servers."""

    def __init__(self, site: Site, dice: random.Random) -> None:
        self.site, self.dice = site, dice
        self.names = {"one": "worker", "two": "worker", "beat": "beat"}
        for name in self.names:
            self.start(name)

    def start(self, name: str) -> None:
        env = {"WORKER_NAME": name, "WORKER_CONCURRENCY": "2"}
        self.site.procs.start(self.names[name], name=name, env=env)

    def supervise(self) -> bool:
        for name in self.names:
            process = self.site.procs.processes[name]
            if not process.is_alive():
                process.kill()
                self.start(name)
        return True

    def blow(self) -> None:
        blows = [
            self.kill,
            self.kill,
            self.kill_child,
            self.kill_child,
            self.terminate,
            self.freeze,
            self.flush,
            self.broker,
            self.database,
        ]
        self.dice.choice(blows)()

    def kill(self) -> None:
        self.site.procs.processes[self.dice.choice(list(self.names))].kill(group=self.dice.random() < 0.5)

    def terminate(self) -> None:
        self.site.procs.processes[self.dice.choice(["one", "two"])].signal(signal.SIGTERM)

    def kill_child(self) -> None:
        children = self.children(self.dice.choice(["one", "two"]))
        if children:
            os.kill(self.dice.choice(children), signal.SIGKILL)

    def children(self, name: str) -> list[int]:
        return family(self.site.procs.processes[name].pid)[1:]

    def freeze(self) -> None:
        """For about as long as a lease."""
        name = self.dice.choice(["one", "two"])
        pids = [self.site.procs.processes[name].pid, *self.children(name)]
        for pid in pids:
            self.send(pid, signal.SIGSTOP)
        before = self.site.rows("SELECT now()")[0][0]
        self.site.wait(
            "the end of the frost", lambda: self.site.rows("SELECT now() > %s + interval '2.5 seconds'", before) == [(True,)]
        )
        for pid in pids:
            self.send(pid, signal.SIGCONT)

    def send(self, pid: int, number: int) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return

    def flush(self) -> None:
        with redis.Redis.from_url(self.site.servers.redis_url) as client:
            client.flushall()

    def broker(self) -> None:
        self.site.servers.kill("redis")
        self.site.start_server("redis")

    def database(self) -> None:
        self.dice.choice([self.site.servers.kill, self.site.servers.stop])("postgres")
        self.site.start_server("postgres")


@pytest.mark.req("T1", "A7", "B1", "C3", "Q2")
def test_after_the_storm_everything_has_ended_right(
    make_site: Callable[..., Site], measured: Callable[[str, float], None]
) -> None:
    measured("seed of the storm (CHAOS_SEED)", SEED)
    site = make_site(LEASE_SECONDS=3.0, LEASE_RENEW_SECONDS=1.0)
    count = COUNT * BLOWS // 10
    site.start_many(Load, [{"seconds": 0.1}] * count)
    site.start_many(Fatal, [{}] * FATAL)
    site.answer_load(count)
    storm = Storm(site, random.Random(SEED))
    for _ in range(BLOWS):
        storm.blow()
        storm.supervise()
        before = len(site.open_runs())
        if before == 0:
            break
        site.wait("a little progress", lambda before=before: storm.supervise() and len(site.open_runs()) < before, seconds=60)
    took = site.wait("the end of the workflows", lambda: storm.supervise() and not site.open_runs(), seconds=90)
    measured("from the last blow to the end of the work", took)
    site.assert_sound(count + FATAL)
    measured("cuts of time that were counted twice over, and are the same", assert_measured(ALIAS))
