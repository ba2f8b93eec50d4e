"""The coding agent in a test: a real repository, a worker in this process, CI and a reviewer that are asked to act, and a model that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection

import flows
from approvals.models import Request
from approvals.services.decide import decide
from flows.models import Transition, Workflow
from flows.testing import Clock, LocalWorker
from project.agents.coding import activities, ci
from project.agents.coding.flows import UpgradeLibrary
from project.agents.coding.git import git
from project.agents.coding.model import ModelAnswer, ModelRequest, RuleBasedModel
from project.agents.coding.repository import commit_to_main, make_remote
from project.agents.coding.sample import HISTORY
from tests.support.fixtures import clock, quick_commits, sound, transactional_db, worker

__all__ = ["Coding", "Scripted", "clock", "coding", "quick_commits", "sound", "transactional_db", "worker"]

ROLE = "release-manager"
SLOW = "    def test_ends_on_the_real_clock"
NODES = UpgradeLibrary.definition.nodes


class Scripted:
    """Answers as the stand-in does, unless the test's script says something else; every call is counted."""

    name = "scripted-1"

    def __init__(self, script: Callable[[int, ModelRequest], ModelAnswer] | None = None) -> None:
        self.script = script
        self.requests: list[ModelRequest] = []

    def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        return self.script(len(self.requests), request) if self.script else RuleBasedModel().complete(request)

    @property
    def calls(self) -> int:
        return len(self.requests)


class Coding:
    """One repository and one run at a time."""

    def __init__(self, folder: Path, worker: LocalWorker, clock: Clock, model: Scripted) -> None:
        self.folder, self.worker, self.clock, self.model = folder, worker, clock, model
        self.remote = make_remote(folder / "remote.git")
        before, _, after = HISTORY[0][1]["tests/test_shop.py"].partition(SLOW)
        quick = before + after[after.index("class Invitations") :]  # these tests run often: without the one that waits
        self.base = commit_to_main(self.remote, {"tests/test_shop.py": quick}, "Without the slow test")
        self.rita = get_user_model().objects.create_superuser("rita")
        self.rita.groups.add(Group.objects.create(name=ROLE))
        self.run: Any = None

    def start(self, key: str = "upgrade") -> Any:
        request = {"remote": str(self.remote), "workspaces": str(self.folder / "workspaces"), "library": "latchkey", "to": "2.0"}
        self.run = UpgradeLibrary.start(request, key=key, goal="Upgrade latchkey to 2.0")
        self.worker.run()
        return self.run

    @property
    def row(self) -> Workflow:
        return Workflow.objects.get(pk=self.run.id)

    def hear_ci(self, *, times: int = 1) -> None:
        """CI builds what was pushed, and says so."""
        sha = git("rev-parse", f"refs/heads/outlast/{self.run.id}", cwd=self.remote).strip()
        ci.announce(ci.build(str(self.remote), sha), flows.signal, times=times)
        self.worker.run()

    def answer(self, verdict: str, comment: str = "") -> str:
        """Rita answers the newest request."""
        request = Request.objects.filter(workflow_id=self.run.id).latest("id")
        decided = decide(request, verdict=verdict, digest=request.digest, by=self.rita, comment=comment)
        self.worker.run()
        return str(decided.code)

    def pass_time(self, **span: float) -> None:
        self.clock.move(**span)
        self.worker.tick()
        self.worker.run()

    def triggers(self) -> set[str]:
        """What has moved the run so far: the triggers of its log, and what its timers were for."""
        rows = Transition.objects.filter(workflow_id=self.run.id).values_list("trigger", "trigger_ref")
        return {f"{trigger}:{ref.partition(':')[0]}" if trigger == "timer" else trigger for trigger, ref in rows}

    def head(self) -> str:
        return git("rev-parse", "refs/heads/main", cwd=self.remote).strip()


@pytest.fixture
def coding(tmp_path: Path, worker: LocalWorker, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Coding]:
    model = Scripted()
    monkeypatch.setattr(activities, "get_model", lambda: model)
    kept = {name: node.do for name, node in NODES.items() if hasattr(node, "do")}
    yield Coding(tmp_path, worker, clock, model)
    for name, do in kept.items():
        object.__setattr__(NODES[name], "do", do)


def instead(node: str, act: Callable[[Any, Callable[[Any], Any]], Any]) -> None:
    """Let that node's function be `act(attempt, the real function)` until the test ends."""
    real = NODES[node].do  # type: ignore[attr-defined]
    object.__setattr__(NODES[node], "do", lambda attempt: act(attempt, real))


def columns_holding(text: str) -> list[str]:
    """Every table and column of the database that holds this text, whatever its type."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_schema, table_name, column_name FROM information_schema.columns "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
        )
        for schema, table, column in cursor.fetchall():
            cursor.execute(f"""SELECT EXISTS (SELECT FROM "{schema}"."{table}" WHERE "{column}"::text LIKE %s)""", [f"%{text}%"])
            if cursor.fetchone()[0]:
                found.append(f"{table}.{column}")
    return sorted(found)
