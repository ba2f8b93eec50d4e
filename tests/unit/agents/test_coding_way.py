"""The coding agent's activities on a real repository, one after the other, as the flow would call them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from flows.errors import PolicyDenied, StateConflict, Transient, VerificationFailed
from project.agents.coding.activities import ci_conclusion, merged_as, pushed_sha, revision_exists
from project.agents.coding.git import MAIN, git
from project.agents.coding.repository import commit_to_main, make_remote


class Seen:
    """The frozen state of a pure function."""

    def __init__(self, results: dict[str, Any], event: dict[str, Any] | None = None) -> None:
        self.results, self.event = results, event


def test_the_repository_is_the_same_wherever_it_is_made(tmp_path: Path) -> None:
    heads = {git("rev-parse", MAIN, cwd=make_remote(tmp_path / name)) for name in ("one", "two")}
    assert len(heads) == 1


def test_making_the_repository_again_keeps_what_is_in_it(tmp_path: Path) -> None:
    remote = make_remote(tmp_path / "remote.git")
    added = commit_to_main(remote, {"NOTE": "kept\n"}, "A note")
    assert git("rev-parse", MAIN, cwd=make_remote(remote)).strip() == added


def test_inspect_finds_the_pin_and_the_uses(world: Any) -> None:
    found = world.run("inspect")
    assert found["main"] == world.head()
    assert found["pinned"] == "1.0"
    assert found["uses"] == {
        "shop/invitations.py": ["latchkey", "latchkey.read", "latchkey.sign"],
        "shop/sessions.py": ["latchkey", "latchkey.LatchkeyError", "latchkey.read", "latchkey.sign"],
    }


def test_the_first_candidate_is_found_wrong_by_the_real_tests(at: Any) -> None:
    world = at("workspace")
    world.run("workspace", "propose")
    with pytest.raises(VerificationFailed):
        world.run("test")
    failed = world.checkpoint["failed"]
    assert failed["candidate"] == world.results["propose"]["digest"]
    assert "test_lives_for_half_an_hour" in failed["output"]
    assert world.checkpoint["verified"] is None


@pytest.mark.req("O6", "F4", "A5")
def test_the_whole_way_with_a_failing_test_and_a_reviewer_who_asks_for_changes(world: Any) -> None:
    world.run("inspect", "workspace", "propose")
    with pytest.raises(VerificationFailed):
        world.run("test")
    world.run("propose", "test", "push")
    first = dict(world.results["push"])
    assert world.hear_ci()["conclusion"] == "success"
    world.answer("changes", "Please mention it in the changelog.")
    seen = world.results["propose"]

    world.run("propose", "test", "push")
    candidate = world.results["propose"]
    assert candidate["digest"] != seen["digest"]
    assert candidate["value"]["files"] == ["CHANGELOG.md", *seen["value"]["files"]]
    assert "+- latchkey 2.0 (was 1.0)" in candidate["value"]["patch"]
    assert "ttl=60 * SESSION_MINUTES" in candidate["value"]["patch"]  # what the test taught is not forgotten
    assert world.results["push"]["sha"] != first["sha"]
    assert world.hear_ci()["conclusion"] == "success"
    world.answer("approved")
    base = world.head()
    world.run("revalidate", "merge", "confirm")

    merge = world.results["merge"]["sha"]
    assert merged_as(Seen(world.results)) == {"merge": merge, "tests": 4}
    assert world.moves(MAIN)[-1] == (base, merge)
    assert world.moves(world.branch) == [("0" * 40, first["sha"]), (first["sha"], world.results["push"]["sha"])]
    assert git("rev-parse", f"{merge}^1", f"{merge}^2", cwd=world.remote).split() == [
        base,
        world.results["push"]["sha"],
    ]
    body = git("show", "-s", "--format=%B", merge, cwd=world.remote)
    assert body.count(f"Outlast-Operation: {world.attempt('merge', new_visit=False).operation_id}") == 1
    assert world.checkpoint["verified"]["candidate"] == candidate["digest"]
    assert world.checkpoint["failed"] is None


def test_ci_that_fails_is_told_to_the_next_candidate(at: Any) -> None:
    world = at("workspace")
    world.run("workspace", "propose", "push")  # without its own tests: CI must find the fault
    assert world.hear_ci()["conclusion"] == "failure"
    world.run("propose", "test")
    feedback = [item for item in world.results["propose"]["evidence"] if item["kind"] == "feedback"]
    assert [item["source"] for item in feedback] == ["ci"]
    assert "test_lives_for_half_an_hour" in feedback[0]["text"]


def test_a_remark_on_another_candidate_changes_nothing(at: Any) -> None:
    world = at("revalidate")
    world.answer("changes", "changelog")
    world.results["ask"]["digest"] = "sha256:" + "0" * 64
    before = world.results["propose"]["value"]
    assert world.run("propose")["value"] == before


def test_the_pure_functions_read_the_record(at: Any) -> None:
    world = at("revalidate")
    assert pushed_sha(Seen(world.results)) == world.head(world.branch)
    assert ci_conclusion(Seen(world.results, {"id": "ci-1", "payload": {"conclusion": "success"}})) == "success"


def test_a_lost_workspace_is_made_again(at: Any) -> None:
    world, other = at("push"), at("push")
    shutil.rmtree(other.results["workspace"]["folder"])
    assert world.run("push") == other.run("push")


# ---------------------------------------------------------------------- the world moves


def test_revalidate_refuses_a_main_that_moved(at: Any) -> None:
    world = at("revalidate")
    commit_to_main(world.remote, {"NOTE": "hello\n"}, "A note")
    with pytest.raises(StateConflict):
        world.run("revalidate")


def test_merge_refuses_a_main_that_moved_and_leaves_it(at: Any) -> None:
    world = at("merge")
    moved = commit_to_main(world.remote, {"NOTE": "hello\n"}, "A note")
    with pytest.raises(StateConflict):
        world.run("merge")
    assert world.head() == moved


def test_merge_loses_against_a_push_in_the_last_moment(at: Any, seam: Any) -> None:
    world, added = at("merge"), []

    def meddle(number: int, when: str, arguments: tuple[str, ...]) -> None:
        if (when, arguments[0]) == ("before", "push"):
            added.append(commit_to_main(world.remote, {"NOTE": "hello\n"}, "A note"))

    seam.act = meddle
    with pytest.raises(StateConflict):
        world.run("merge")
    assert [world.head()] == added


def test_a_new_candidate_is_made_for_the_main_that_moved(at: Any) -> None:
    world = at("merge")
    use = "import latchkey\n\nfrom shop.secret import SECRET\n\nSEAL = latchkey.sign(1, SECRET, minutes=5)\n"
    moved = commit_to_main(world.remote, {"shop/seals.py": use}, "Seals")
    with pytest.raises(StateConflict):
        world.run("merge")
    world.run("propose", "test", "push")
    assert world.results["propose"]["value"]["base"] == moved
    assert "shop/seals.py" in world.results["propose"]["value"]["files"]
    assert "ttl=60 * 5" in world.results["propose"]["value"]["patch"]
    world.answer("approved")
    world.run("revalidate", "merge", "confirm")


def test_nothing_is_merged_without_an_approved_candidate(at: Any) -> None:
    world = at("merge")
    attempt = world.attempt("merge")
    attempt.approved = None
    with pytest.raises(PolicyDenied):
        world.call(attempt)


def test_merge_refuses_what_ci_has_not_seen(at: Any) -> None:
    world = at("merge")
    world.results["push"]["sha"] = world.head()
    with pytest.raises(StateConflict):
        world.run("merge")


def test_the_branch_of_somebody_else_is_left_alone(at: Any) -> None:
    world = at("push")
    git("update-ref", world.branch, world.head(), cwd=world.remote)
    with pytest.raises(StateConflict):
        world.run("push")
    assert world.head(world.branch) == world.head()


def test_confirm_notices_a_main_without_our_merge(at: Any) -> None:
    world = at("confirm")
    git("update-ref", MAIN, f"{world.head()}^1", cwd=world.remote)
    with pytest.raises(StateConflict):
        world.run("confirm")


def test_confirm_notices_a_main_whose_tests_fail(at: Any) -> None:
    world = at("confirm")
    commit_to_main(world.remote, {"requirements.txt": "latchkey==1.0\n"}, "Back again")
    with pytest.raises(VerificationFailed):
        world.run("confirm")


@pytest.mark.parametrize("node", ["push", "merge"])
@pytest.mark.parametrize("answer", ["cancel", "lost"])
def test_work_that_is_no_longer_wanted_has_no_effect(at: Any, node: str, answer: str) -> None:
    world = at(node)
    before = git("for-each-ref", cwd=world.remote)
    with pytest.raises(Transient):
        world.call(world.attempt(node, heartbeats=[answer]))
    assert git("for-each-ref", cwd=world.remote) == before


@pytest.mark.req("A5")
def test_a_checkpoint_on_a_rewritten_main_is_explained(at: Any) -> None:
    world = at("merge")
    assert revision_exists(world.attempt("merge")) is None
    git("update-ref", MAIN, f"{world.head()}^1", cwd=world.remote)
    assert "was rewritten" in str(revision_exists(world.attempt("merge")))


def test_without_a_checkpoint_there_is_nothing_to_validate(world: Any) -> None:
    assert revision_exists(world.attempt("inspect")) is None
