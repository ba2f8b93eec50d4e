"""Every activity of the coding agent may be killed around every git command that it gives, and run again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from flows.errors import StateConflict
from project.agents.coding.git import MAIN, GitFailed, git

NODES = ["inspect", "workspace", "propose", "test", "push", "revalidate", "merge", "confirm"]


class Killed(BaseException):
    """The process is gone: no handler of the activity may run on."""


def effects(world: Any) -> tuple[Any, ...]:
    """What the outside has seen."""
    return git("for-each-ref", cwd=world.remote), world.moves(MAIN), world.moves(world.branch)


def settled(node: str, result: Any) -> Any:
    """A result without the time at which it was made and the folder of its world."""
    if node == "inspect":
        return {**result, "read_at": 0}
    return {**result, "folder": ""} if node == "workspace" else result


@pytest.mark.req("B1", "B2")
@pytest.mark.parametrize("node", NODES)
def test_killed_around_any_git_command_and_run_again(at: Any, seam: Any, node: str) -> None:
    calm = at(node)
    expected = settled(node, calm.run(node))
    count = len(seam.commands)
    assert count > 0
    for fatal in range(count):
        for moment in ("before", "after"):
            world = at(node)
            seam.commands.clear()

            def kill(number: int, when: str, arguments: object, chosen: Any = (fatal, moment)) -> None:
                if (number, when) == chosen:
                    raise Killed

            seam.act = kill
            with pytest.raises(Killed):
                world.call(world.attempt(node))
            seam.act = lambda *_: None
            again = world.call(world.attempt(node, new_visit=False, number=2))
            assert settled(node, again) == expected, (node, fatal, moment)
            assert effects(world) == effects(calm), (node, fatal, moment)


@pytest.mark.parametrize("node", NODES)
def test_run_three_times_has_the_effect_of_once(at: Any, node: str) -> None:
    world = at(node)
    first = settled(node, world.run(node))
    after_first = effects(world)
    for number in (2, 3):
        assert settled(node, world.call(world.attempt(node, new_visit=False, number=number))) == first
    assert effects(world) == after_first


@pytest.mark.parametrize("node", ["workspace", "push", "merge"])
def test_two_attempts_at_the_same_time_have_the_effect_of_one(at: Any, node: str) -> None:
    world, calm = at(node), at(node)
    calm.run(node)
    attempts = [world.attempt(node), world.attempt(node, new_visit=False, number=2)]
    together, results = threading.Barrier(2), []

    def one(attempt: Any) -> None:
        together.wait()
        results.append(settled(node, world.call(attempt)))

    threads = [threading.Thread(target=one, args=[attempt]) for attempt in attempts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [settled(node, calm.results[node])] * 2
    assert effects(world) == effects(calm)


@pytest.mark.parametrize("node", ["push", "merge"])
def test_a_push_whose_answer_was_lost_is_settled_by_looking(at: Any, seam: Any, node: str) -> None:
    world = at(node)

    def lose(number: int, when: str, arguments: tuple[str, ...]) -> None:
        if (when, arguments[0]) == ("after", "push"):
            raise GitFailed("the connection broke")

    seam.act = lose
    world.run(node)
    assert len(seam.commands) > 0
    assert world.head(MAIN if node == "merge" else world.branch) == world.results[node]["sha"]


@pytest.mark.parametrize("node", ["push", "merge"])
def test_a_push_that_never_arrived_may_be_tried_again(at: Any, seam: Any, node: str) -> None:
    world = at(node)
    before = effects(world)

    def refuse(number: int, when: str, arguments: tuple[str, ...]) -> None:
        if (when, arguments[0]) == ("before", "push"):
            raise GitFailed("no route to host")

    seam.act = refuse
    with pytest.raises(GitFailed):
        world.run(node)
    assert effects(world) == before


def test_an_old_owner_that_wakes_up_does_not_push_over_the_newer_candidate(at: Any) -> None:
    world = at("push")
    sleeper = world.attempt("push")  # stopped here, and taken for dead
    world.call(world.attempt("push", new_visit=False, number=2))
    world.results["push"] = world.call(world.attempt("push", new_visit=False, number=3))
    world.answer("changes", "changelog")
    world.run("propose", "test", "push")
    before = effects(world)
    with pytest.raises(StateConflict):
        world.call(sleeper)
    assert effects(world) == before


def test_an_old_owner_that_wakes_up_does_not_merge_again(at: Any) -> None:
    world = at("merge")
    sleeper = world.attempt("merge")
    world.results["merge"] = world.call(world.attempt("merge", new_visit=False, number=2))
    world.run("confirm")
    before = effects(world)
    assert world.call(sleeper) == world.results["merge"]
    assert effects(world) == before
