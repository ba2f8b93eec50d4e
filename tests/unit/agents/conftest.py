"""A small world for the coding agent: a real bare repository, and attempts as a worker would hand them out."""

from __future__ import annotations

import copy
import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from flows import Context
from flows.core import artifact, canonical
from flows.core import context as core
from flows.core.context import Section
from flows.errors import VerificationFailed
from project.agents.coding import git as git_module
from project.agents.coding.ci import build
from project.agents.coding.flows import UpgradeLibrary
from project.agents.coding.git import MAIN, git
from project.agents.coding.repository import commit_to_main, make_remote, moves
from project.agents.coding.sample import HISTORY

WORKFLOW = "01890000-0000-7000-8000-000000000001"
SLOW = "    def test_ends_on_the_real_clock"


@dataclasses.dataclass
class FakeAttempt:
    """What activity code gets; the workflow's record is shared, the rest belongs to this attempt."""

    world: World
    node: str
    visit: int
    number: int = 1
    heartbeats: list[str] = dataclasses.field(default_factory=list)
    epoch: int = 0
    intent_version: int = 1
    workflow_id: str = WORKFLOW
    key: str = "upgrade"
    notes: Any = None

    def __post_init__(self) -> None:
        # As a worker would: the results are those at the time of the claim.
        self.input = copy.deepcopy(self.world.input)
        self.results = copy.deepcopy(self.world.results)
        self.approved = self.results.get("propose") if self.node == "merge" else None
        self.operation_id = f"{WORKFLOW}/{self.node}/{self.visit}"
        self.id = f"{self.operation_id}/{self.number}"

    @property
    def checkpoint(self) -> dict[str, Any]:
        return self.world.checkpoint

    def save_checkpoint(self, facts: dict[str, Any]) -> None:
        assert len(canonical.canonical(facts)) < 16 * 1024
        self.world.checkpoint = copy.deepcopy(facts)

    def context(self, *, max_tokens: int, extra: Any, nodes: Any, without: Any) -> Context:
        decision = core.fact("node", {"node": self.node, "visit": self.visit})
        sections = [
            Section("goal", (core.fact("goal", "Upgrade it"),)),
            Section("decision", (decision,)),
            Section("extra", core.author_items(extra, "the context")),
        ]
        return core.build(sections, max_tokens=max_tokens)

    def record_model(self, model: str, **call: Any) -> None:
        self.world.models.append(artifact.model_call("the model call", model, **call))

    def heartbeat(self) -> str:
        return self.heartbeats.pop(0) if self.heartbeats else "continue"


@dataclasses.dataclass
class World:
    folder: Path
    input: dict[str, Any] = dataclasses.field(default_factory=dict)
    results: dict[str, Any] = dataclasses.field(default_factory=dict)
    visits: dict[str, int] = dataclasses.field(default_factory=dict)
    checkpoint: dict[str, Any] = dataclasses.field(default_factory=dict)
    models: list[artifact.ModelCall] = dataclasses.field(default_factory=list)

    @property
    def remote(self) -> Path:
        return self.folder / "remote.git"

    @property
    def branch(self) -> str:
        return f"refs/heads/outlast/{WORKFLOW}"

    def attempt(self, node: str, *, new_visit: bool = True, **more: Any) -> FakeAttempt:
        if new_visit:
            self.visits[node] = self.visits.get(node, 0) + 1
        return FakeAttempt(self, node, self.visits[node], **more)

    def call(self, attempt: FakeAttempt) -> Any:
        """What the node's function returns, as it would be recorded."""
        definition = UpgradeLibrary.definition.nodes[attempt.node]
        result = definition.do(attempt)
        if attempt.node == "propose":
            definition.schema(result.value)
            body = {"choice": result.choice, "value": result.value}
            result = {**body, "evidence": result.evidence, "digest": canonical.digest(body), "revision": attempt.visit}
        return copy.deepcopy(result)

    def run(self, *nodes: str) -> Any:
        """One visit of each node, recorded; the result of the last."""
        for node in nodes:
            self.results[node] = self.call(self.attempt(node))
        return self.results[nodes[-1]]

    def hear_ci(self) -> dict[str, Any]:
        payload = build(str(self.remote), self.results["push"]["sha"])
        self.results["ci"] = {"value": payload["conclusion"], "event": f"ci-{payload['sha']}", "payload": payload}
        return payload

    def answer(self, answer: str, comment: str = "") -> None:
        self.results["ask"] = {
            "answer": answer,
            "comment": comment,
            "by": "7",
            "digest": self.results["propose"]["digest"],
        }

    def moves(self, ref: str) -> list[tuple[str, str]]:
        return moves(self.remote, ref)

    def head(self, ref: str = MAIN) -> str:
        return git("rev-parse", ref, cwd=self.remote).strip()

    def copy(self, folder: Path) -> World:
        shutil.copytree(self.folder, folder, symlinks=True)
        twin = World(folder, {**self.input}, copy.deepcopy(self.results), {**self.visits}, copy.deepcopy(self.checkpoint))
        twin.input |= {"remote": str(twin.remote), "workspaces": str(folder / "workspaces")}
        if "workspace" in twin.results:
            twin.results["workspace"]["folder"] = str(folder / Path(twin.results["workspace"]["folder"]).relative_to(self.folder))
        return twin


def new_world(folder: Path) -> World:
    folder.mkdir(parents=True)
    world = World(folder)
    world.input = {
        "remote": str(make_remote(world.remote)),
        "workspaces": str(folder / "workspaces"),
        "library": "latchkey",
        "to": "2.0",
    }
    text = HISTORY[0][1]["tests/test_shop.py"]
    before, _, after = text.partition(SLOW)
    quick = before + after[after.index("class Invitations") :]  # these tests run often: without the one that waits
    commit_to_main(world.remote, {"tests/test_shop.py": quick}, "Without the slow test")
    return world


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, World]:
    """The world as it stands before each node of the way to the merge."""
    base = tmp_path_factory.mktemp("stages")
    world, found = new_world(base / "world"), {}
    way = ["inspect", "workspace", "propose", "test", "propose", "test", "push", "revalidate", "merge", "confirm"]
    for number, node in enumerate(way):
        found[node] = world.copy(base / f"{number}-{node}")
        try:
            world.run(node)
        except VerificationFailed:
            assert (node, world.visits[node]) == ("test", 1)  # the first candidate is wrong on purpose
        if node == "push":
            assert world.hear_ci()["conclusion"] == "success"
            world.answer("approved")
    found["end"] = world
    return found


@pytest.fixture
def at(stages: dict[str, World], tmp_path: Path) -> Any:
    """`at("push")`: a world of its own, just before that node."""
    counter = iter(range(1000))
    return lambda node: stages[node].copy(tmp_path / f"world-{next(counter)}")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A fresh world, before the first node."""
    return new_world(tmp_path / "world")


class Seam:
    """Every git command goes through here; `act(number, when, arguments)` may raise or meddle before and after it."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.act: Any = lambda number, when, arguments: None

    def git(self, *arguments: str, **options: Any) -> str:
        number = len(self.commands)
        self.commands.append(arguments)
        self.act(number, "before", arguments)
        output = git(*arguments, **options)
        self.act(number, "after", arguments)
        return output


@pytest.fixture
def seam(monkeypatch: pytest.MonkeyPatch) -> Seam:
    seam = Seam()
    monkeypatch.setattr(git_module, "git", seam.git)
    return seam
