"""The research agent in a test: an archive in a folder, a worker in this process, people who answer, and a model that counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

import flows
from approvals.models import Request
from approvals.services.decide import decide
from flows.models import Workflow
from flows.testing import Clock, LocalWorker
from project.agents.research import activities
from project.agents.research.archive import DATASET, Archive
from project.agents.research.flows import Research
from project.agents.research.model import JUDGE, ModelAnswer, ModelRequest, RuleBasedModel
from project.agents.research.models import Claim
from project.agents.research.relay import Relay
from tests.support.fixtures import clock, quick_commits, sound, transactional_db, worker

__all__ = ["Desk", "clock", "desk", "quick_commits", "sound", "transactional_db", "worker"]

QUESTION = "May lorries of forty tonnes use the bridge?"
NODES = Research.definition.nodes


class Scripted:
    """Answers as the stand-in does, unless the test's script says something else; every call is kept."""

    name = "scripted-1"

    def __init__(self) -> None:
        self.script: Callable[[int, ModelRequest], ModelAnswer] | None = None
        self.requests: list[ModelRequest] = []

    def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        return self.script(len(self.requests), request) if self.script else RuleBasedModel().complete(request)

    def judged(self, since: int = 0) -> list[str]:
        """The claims that it was asked to judge, from that call on, in order of their names."""
        return sorted(one.facts["claim"] for one in self.requests[since:] if one.task == JUDGE)


class Desk:
    """One archive and one question."""

    def __init__(self, folder: Path, worker: LocalWorker, clock: Clock, model: Scripted) -> None:
        self.archive, self.worker, self.clock, self.model = Archive(folder), worker, clock, model
        self.archive.folder.mkdir()
        self.relay = Relay(str(folder), flows.signal)
        self.ann = get_user_model().objects.create_superuser("ann")
        self.eve = get_user_model().objects.create_superuser("eve")
        self.eve.groups.add(Group.objects.get_or_create(name="research-editor")[0])
        self.run: Any = None

    def announce(self, name: str, *about: str, text: str = "", publisher: str = "city", kind: str = "document") -> None:
        self.archive.announce(name, publisher=publisher, about=about, kind=kind)
        if text:
            self.archive.publish(name, text)

    def bridge(self) -> None:
        """Two claims on one bridge and a third beside them; each has one source that is there."""
        self.announce("load-test", "bridge/strength", text="bridge/strength: holds 70")
        self.announce("inspection", "bridge/rust", text="bridge/rust: holds 80")
        self.announce("counts", "traffic", text="traffic: holds 90", kind=DATASET)

    def start(self, **more: Any) -> Any:
        given = {"archive": str(self.archive.folder), "question": QUESTION, "trusted": ["city"], **more}
        self.run = Research.start(given, key="bridge", goal="Whether the bridge bears them", by=self.ann)
        self.work()
        return self.run

    def work(self) -> None:
        """As far as it goes without anybody else; the clock looks after children, as it does anywhere."""
        before: Any = None
        while before != (now := list(Workflow.objects.order_by("pk").values_list("pk", "version"))):
            before = now
            self.worker.run(["agents", "cleanup"])
            self.worker.tick()

    def publish(self, name: str, text: str) -> None:
        self.archive.publish(name, text)
        self.relay.look()
        self.work()

    def answer(self, verdict: str) -> str:
        decided = decide(self.request, verdict=verdict, digest=self.request.digest, by=self.eve, comment="As I see it.")
        self.work()
        return str(decided.code)

    def pass_time(self, **span: float) -> None:
        self.clock.move(**span)
        self.work()

    @property
    def row(self) -> Workflow:
        return Workflow.objects.get(pk=self.run.id)

    @property
    def at(self) -> tuple[str, str]:
        return self.row.status, self.row.node

    @property
    def request(self) -> Any:
        return Request.objects.filter(workflow_id=self.run.id).latest("id")

    @property
    def verdicts(self) -> dict[str, tuple[str, int]]:
        return {one.name: (one.verdict, one.confidence) for one in Claim.objects.filter(run=self.run.id)}


@pytest.fixture
def desk(worker: LocalWorker, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    model = Scripted()
    monkeypatch.setattr(activities, "get_model", lambda: model)
    return Desk(tmp_path / "archive", worker, clock, model)
