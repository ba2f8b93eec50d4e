"""The browser agent in a test: a real site, a worker in this process, a person who answers, and a model that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile

import flows
from approvals.api import answer as give
from approvals.models import Request
from approvals.services.decide import decide
from flows.core import payload
from flows.models import Workflow
from flows.testing import Clock, LocalWorker
from project.agents.browser import activities, pipe
from project.agents.browser.flows import FilePermit
from project.agents.browser.model import ModelAnswer, ModelRequest, RuleBasedModel
from project.agents.browser.process import SiteProcess
from project.agents.browser.relay import Relay
from project.dev.engines import child
from tests.support.fixtures import clock, quick_commits, sound, transactional_db, worker

__all__ = ["Scripted", "Town", "clock", "driver", "quick_commits", "site", "sound", "town", "transactional_db", "worker"]

NODES = FilePermit.definition.nodes
PLAN = b"%PDF-1.7 the market square from above"
FACTS = {
    "name": "Ada Lovelace",
    "event": "Summer fair",
    "day": "2027-06-05",
    "place": "Market square",
    "guests": 250,
    "music": "yes",
}
CHROMIUM = pytest.param(
    "chromium",
    marks=[
        pytest.mark.browser,
        pytest.mark.skipif(pipe.find() is None, reason="no Chromium here (Debian: apt-get install chromium)"),
    ],
)
BOTH = pytest.mark.parametrize("driver", ["http", CHROMIUM], indirect=True)


@pytest.fixture
def driver(request: pytest.FixtureRequest, settings: Any) -> str:
    """The program behind the page; `BOTH` makes a test run with each."""
    name = str(getattr(request, "param", "http"))
    settings.BROWSER_AGENT_DRIVER = name
    return name


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    """A site of the test's own."""
    with SiteProcess(wrapper=child("--signal", "9", "--")) as process:
        yield process


class Scripted:
    """Answers as the stand-in does, unless the test's script says something else; every call is kept."""

    name = "scripted-1"

    def __init__(self) -> None:
        self.script: Callable[[int, ModelRequest], ModelAnswer] | None = None
        self.requests: list[ModelRequest] = []

    def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        return self.script(len(self.requests), request) if self.script else RuleBasedModel().complete(request)


class Town:
    """One site and one run."""

    def __init__(self, site: SiteProcess, worker: LocalWorker, clock: Clock, model: Scripted) -> None:
        self.site, self.worker, self.clock, self.model = site, worker, clock, model
        self.relay = Relay(site.address, flows.signal)
        self.ada = get_user_model().objects.create_superuser("ada")
        self.run: Any = None

    def start(self, key: str = "fair", **facts: Any) -> Any:
        given = {"site": self.site.address, "applicant": "ada", "facts": {**FACTS, **facts}}
        self.run = FilePermit.start(given, key=key, goal="A permit for the summer fair", by=self.ada)
        self.worker.run()
        return self.run

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
    def attempt(self) -> Any:
        """As much of an attempt as a visit of the site needs."""
        checkpoint = payload.decode(self.row.checkpoint) or {}
        return SimpleNamespace(workflow_id=str(self.run.id), input=self.row.input, checkpoint=checkpoint)

    def upload(self, content: bytes = PLAN) -> str:
        """Ada gives the plan."""
        files = {"document": ContentFile(content, name="../plan <b>.pdf")}
        told = give(self.request, values={}, files=files, digest=self.request.digest, by=self.ada)
        self.work()
        return str(told.code)

    def check(self, state: str = "accepted", document: str = "") -> None:
        """An official looks at the newest document, and the site says so."""
        number = document or self.site.ledger()["documents"][-1]["number"]
        self.site.control(check=[number, state])
        self.relay.look()
        self.work()

    def answer(self, verdict: str = "approve", comment: str = "") -> str:
        """Ada answers what she is asked to confirm."""
        decided = decide(self.request, verdict=verdict, digest=self.request.digest, by=self.ada, comment=comment)
        self.work()
        return str(decided.code)

    def work(self) -> None:
        self.worker.run()

    def pass_time(self, **span: float) -> None:
        self.clock.move(**span)
        self.worker.tick()
        self.worker.run()

    def finish(self) -> tuple[str, str]:
        """Until it has ended, whatever is to be asked, undone and released on the way."""
        for _ in range(20):
            self.worker.run(["agents", "cleanup"])
            if self.row.status in {"complete", "failed", "cancelled", "superseded"}:
                break
            self.pass_time(seconds=20)
        return self.at

    def permits(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.site.ledger()["permits"]
        return found

    def to(self, node: str) -> None:
        """From the start to where that node waits."""
        self.start()
        for name, step in (("upload", self.upload), ("check", self.check), ("confirm", self.answer)):
            assert self.at == ("waiting", name), (self.at, self.row.outcome, self.row.error_code)
            if name == node:
                return
            step()


@pytest.fixture
def town(
    site: SiteProcess,
    worker: LocalWorker,
    clock: Clock,
    driver: str,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Town:
    settings.MEDIA_ROOT = tmp_path / "media"
    model = Scripted()
    monkeypatch.setattr(activities, "get_model", lambda: model)
    return Town(site, worker, clock, model)
