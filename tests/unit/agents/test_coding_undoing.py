"""What is asked and done about the coding agent's effects afterwards: on a real repository, whoever asks, however often."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from flows import DidNotHappen, Happened
from flows.errors import InvalidCandidate
from project.agents.coding import undoing
from project.agents.coding.git import MAIN, git
from project.agents.coding.repository import commit_to_main

pytestmark = pytest.mark.req("B5", "B6", "O6")


@dataclasses.dataclass
class FakeOperation:
    """What the functions read of an operation."""

    world: Any
    id: str
    of: Any = None

    def __post_init__(self) -> None:
        self.input, self.results = self.world.input, self.world.results
        self.workflow_id = self.world.attempt("inspect", new_visit=False).workflow_id


def operation(world: Any, node: str, evidence: Any = None) -> FakeOperation:
    """The operation of a node's visit; with evidence, the one that compensates it."""
    name = f"{world.attempt('inspect', new_visit=False).workflow_id}/{node}/1"
    if evidence is None:
        return FakeOperation(world, name)
    of = dataclasses.make_dataclass("Of", ["id", "evidence"])(name, evidence)
    return FakeOperation(world, f"{name}/compensate", of)


def test_a_push_is_found_where_it_was_made_and_only_there(at: Any) -> None:
    world = at("push")
    assert undoing.find_branch(operation(world, "push")) == DidNotHappen()
    pushed = world.run("push")
    assert undoing.find_branch(operation(world, "push")) == Happened(pushed, external_id=pushed["sha"])


def test_a_merge_is_found_by_its_candidate(at: Any) -> None:
    world = at("merge")
    assert undoing.find_merge(operation(world, "merge")) == DidNotHappen()
    merged = world.run("merge")
    assert undoing.find_merge(operation(world, "merge")) == Happened(merged, external_id=merged["sha"])


def test_a_branch_is_taken_away_once_and_nobody_elses(at: Any) -> None:
    world = at("revalidate")
    pushed = world.results["push"]
    taking = operation(world, "push", pushed)
    assert undoing.delete_branch(taking) == {"deleted": True}
    assert undoing.delete_branch(taking) == {"deleted": False}
    assert git("ls-remote", str(world.remote), world.branch, cwd=world.folder) == ""
    git("push", "--quiet", str(world.remote), f"{world.head()}:{world.branch}", cwd=world.remote)
    assert undoing.delete_branch(taking) == {"deleted": False}, "somebody else's commit stands there now"


def test_a_merge_is_taken_back_once_by_a_commit(at: Any) -> None:
    world = at("confirm")
    before = git("rev-parse", f"{world.results['merge']['sha']}^1^{{tree}}", cwd=world.remote).strip()
    back = operation(world, "merge", world.results["merge"])
    first = undoing.revert_merge(back)
    assert undoing.revert_merge(back) == first
    assert world.head() == first["sha"]
    assert git("rev-parse", f"{MAIN}^{{tree}}", cwd=world.remote).strip() == before
    assert [old for old, _ in world.moves(MAIN)][-1] == world.results["merge"]["sha"]


def test_a_merge_is_taken_back_below_what_came_after_it(at: Any) -> None:
    world = at("confirm")
    commit_to_main(world.remote, {"later.txt": "kept\n"}, "Something else")
    undoing.revert_merge(operation(world, "merge", world.results["merge"]))
    assert git("show", f"{MAIN}:later.txt", cwd=world.remote) == "kept\n"


def test_a_revert_that_does_not_apply_changes_nothing(at: Any) -> None:
    world = at("confirm")
    for path in world.results["propose"]["value"]["files"]:
        commit_to_main(world.remote, {path: "something else entirely\n"}, f"Rewrite {path}")
    head = world.head()
    with pytest.raises(InvalidCandidate):
        undoing.revert_merge(operation(world, "merge", world.results["merge"]))
    assert world.head() == head


def test_the_workspace_goes_and_may_go_twice(at: Any) -> None:
    world = at("push")
    folder = Path(world.results["workspace"]["folder"])
    assert folder.exists()
    leaving = operation(world, "workspace", world.results["workspace"])
    for _ in range(2):
        assert undoing.remove_workspace(leaving) == {"removed": str(folder)}
        assert list(folder.parent.glob(f"{folder.name}*")) == []
