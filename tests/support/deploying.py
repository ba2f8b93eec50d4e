"""The deployment agent in a test: a real cloud, a worker in this process, a relay that is asked to look, and a seam at the client."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flows
from flows import commitments, errors
from flows.testing import Clock, LocalWorker
from project.agents.deployment.campaign import TERMINAL, judge
from project.agents.deployment.client import Cloud
from project.agents.deployment.flows import DeployService
from project.agents.deployment.process import CloudProcess
from project.agents.deployment.relay import Relay
from tests.support.cloud import own, shared
from tests.support.fixtures import clock, quick_commits, sound, transactional_db, worker

__all__ = ["World", "clock", "own", "quick_commits", "seam", "shared", "sound", "transactional_db", "worker", "world"]

READS = {"windows": "check", "slo": "slo", "operations": "question"}


class Seam:
    """Every request goes through here. `at(verb, when, act)` acts once: before it, after it, or after it and then its answer is lost."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.waiting: list[tuple[str, str, Callable[[], Any]]] = []

    def at(self, verb: str, when: str, act: Callable[[], Any]) -> None:
        self.waiting.append((verb, when, act))

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def _call(cloud: Cloud, method: str, path: tuple[str, ...], *more: Any, **options: Any) -> Any:
            verb = verb_of(method, path)
            self.seen.append(verb)
            self._act(verb, "before")
            found = call(cloud, method, path, *more, **options)
            self._act(verb, "after")
            if self._act(verb, "lost"):
                raise errors.AmbiguousOutcome("the answer was lost")
            return found

        return _call

    def _act(self, verb: str, when: str) -> bool:
        mine = [one for one in self.waiting if one[:2] == (verb, when)]
        for one in mine:
            self.waiting.remove(one)
            one[2]()
        return bool(mine)


def verb_of(method: str, path: tuple[str, ...]) -> str:
    if method == "GET":
        return READS.get(path[0], path[0])
    return path[-1] if len(path) == 3 else {"windows": "reserve", "deployments": "canary"}.get(path[0], "set")


class World:
    """One service of its own at a cloud."""

    def __init__(self, process: CloudProcess, worker: LocalWorker, clock: Clock) -> None:
        self.process, self.worker, self.clock = process, worker, clock
        self.service = f"svc-{uuid.uuid4().hex[:8]}"
        self.cloud = process.client()
        self.relay = Relay(self.cloud, flows.signal)
        while list(self.relay.feed.page()):
            """What other tests have left in the feed is not handed over."""

    def start(self, *, key: str = "", **given: Any) -> Any:
        usual = {"service": self.service, "version": "2.0", "cloud": self.cloud.address, "minutes": 30, "opens_in": 0}
        return DeployService.start({**usual, **given}, key=key or f"deploy-{self.service}")

    def step(self, *, by: float = 20.0) -> None:
        """Look at the feed, work until nothing is ready, and let so many seconds pass."""
        self.relay.look()
        self.worker.run()
        self.clock.move(seconds=by)
        self.worker.tick()

    def finish(self, run: Any, *, rounds: int = 120, pause: float = 0.0) -> Any:
        """Until the workflow has ended, or only a person lets it go on; the row."""
        for _ in range(rounds):
            self.step()
            row = flows.get(run.id)
            if row.status in TERMINAL or row.outcome == "HUMAN_REQUIRED":
                return row
            time.sleep(pause)
        raise AssertionError(f"unfinished: {flows.describe(run.id)}")

    def wait_at(self, node: str, run: Any) -> None:
        """Until the workflow rests at that wait, whose event is not handed over."""
        for _ in range(3):
            self.worker.run()
            if flows.get(run.id).node == node:
                return
            self.relay.look()
        raise AssertionError(f"it is at {flows.get(run.id).node}")

    def reach(self, run: Any) -> tuple[str, str]:
        """(status, node) of the end, with nothing left behind at either side."""
        row = self.finish(run)
        assert row.status in TERMINAL, flows.describe(run.id)
        self.check(run)
        return row.status, row.node

    def check(self, run: Any) -> None:
        """The cloud holds nothing, and did nothing twice; Outlast owes nothing, and claims nothing that is not so."""
        summary = self.cloud.ledger(self.service)["summary"]
        assert (summary["duplicated"], summary["windows"], summary["canaries"]) == ([], [], [])
        assert commitments.active() == []
        found = judge(self.cloud, [run.id])
        assert (found["duplicated"], found["lost"], found["live_commitments"], found["unfinished"]) == ([], [], [], [])

    def did(self) -> list[str]:
        """The verbs of the ledger, in order."""
        return [effect["verb"] for effect in self.cloud.ledger(self.service)["effects"]]

    def version(self) -> str | None:
        found: str | None = self.cloud.service(self.service)["version"]
        return found


@pytest.fixture
def world(shared: CloudProcess, worker: LocalWorker, clock: Clock) -> Iterator[World]:
    made = World(shared, worker, clock)
    made.cloud.faults(seed=7)
    yield made
    made.cloud.faults()


@pytest.fixture
def seam(monkeypatch: pytest.MonkeyPatch) -> Seam:
    made = Seam()
    monkeypatch.setattr(Cloud, "_call", made.around(Cloud._call))
    return made
