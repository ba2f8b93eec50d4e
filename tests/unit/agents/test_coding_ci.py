"""The small CI: events twice, early, again after a restart, and always the same."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from project.agents.coding.ci import NOBODY, Watcher, build, on_push
from project.agents.coding.repository import install_hook


class Inbox:
    """Takes events as `flows.signal` does; `refuse` makes the next ones fail."""

    def __init__(self, refuse: int = 0) -> None:
        self.refuse, self.events = refuse, []

    def __call__(self, event: str, kind: str, *, key: str, payload: dict[str, Any]) -> str:
        if self.refuse:
            self.refuse -= 1
            raise ConnectionError
        self.events.append((event, kind, key, json.dumps(payload, sort_keys=True)))
        return "accepted"


@pytest.mark.req("E1", "E2")
def test_whoever_reports_and_however_often_it_is_the_same_event(at: Any) -> None:
    world, inbox = at("push"), Inbox()
    sha = world.run("push")["sha"]
    on_push(str(world.remote), [f"{NOBODY} {sha} {world.branch}\n"], inbox, mischief=True)
    assert len(inbox.events) == 1
    for _ in range(2):  # a CI that was started again knows nothing of what it has sent
        watcher = Watcher(str(world.remote), inbox, mischief=True)
        watcher.look()
        watcher.look()
    assert len(inbox.events) == 5
    assert len(set(inbox.events)) == 1
    assert inbox.events[0][:3] == (f"ci-{sha}", "ci.finished", sha)


def test_without_mischief_an_event_comes_once_and_not_from_the_hook(at: Any) -> None:
    world, inbox = at("push"), Inbox()
    sha = world.run("push")["sha"]
    on_push(str(world.remote), [f"{NOBODY} {sha} {world.branch}\n"], inbox, mischief=False)
    watcher = Watcher(str(world.remote), inbox, mischief=False)
    watcher.look()
    watcher.look()
    assert [event for event, *_ in inbox.events] == [f"ci-{sha}"]


def test_the_hook_is_early_for_new_branches_of_the_agent_only(at: Any) -> None:
    world, inbox = at("merge"), Inbox()
    sha = world.head(world.branch)
    lines = [f"{NOBODY} {sha} refs/heads/main\n", f"{'1' * 40} {sha} {world.branch}\n"]
    on_push(str(world.remote), lines, inbox, mischief=True)
    assert inbox.events == []


def test_an_event_that_could_not_be_sent_is_sent_in_the_next_round(at: Any) -> None:
    world, inbox = at("merge"), Inbox(refuse=1)
    watcher = Watcher(str(world.remote), inbox, mischief=False)
    ending = threading.Event()
    rounds = iter([False, False, True])
    ending.is_set = lambda: next(rounds)  # type: ignore[method-assign]
    watcher.run(0, ending)
    assert len(inbox.events) == 1


def test_a_failing_commit_is_reported_with_what_failed(at: Any) -> None:
    world = at("workspace")
    world.run("workspace", "propose", "push")
    payload = build(str(world.remote), world.results["push"]["sha"])
    assert payload["conclusion"] == "failure"
    assert payload["text"].startswith("test_holds_for_six_days (tests.test_shop.Invitations.test_holds_for_six_days): ")


def test_the_hook_runs_during_the_push_and_is_free_of_gits_own_environment(at: Any, tmp_path: Path) -> None:
    world, seen = at("push"), tmp_path / "seen"
    program = (
        f"import os, pathlib, sys\npathlib.Path({str(seen)!r}).write_text(sys.stdin.read() + str(os.environ.get('GIT_DIR')))"
    )
    install_hook(world.remote, [sys.executable, "-c", program], tmp_path)
    sha = world.run("push")["sha"]
    assert seen.read_text() == f"{NOBODY} {sha} {world.branch}\nNone"
