"""The relay, and the campaign: many deployments under many faults, judged by the cloud's own ledger."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

import flows
from flows import commitments
from flows.errors import Transient
from flows.testing import Clock, LocalWorker
from project.agents.deployment.campaign import judge, start_many
from project.agents.deployment.process import CloudProcess
from project.agents.deployment.relay import Relay
from project.dev.engines import child
from tests.support.cloud import Wire, until
from tests.support.deploying import *  # noqa: F403 - fixtures are found by their names
from tests.support.deploying import Seam, World

EMPTY = {"duplicated": [], "lost": [], "live_commitments": [], "unfinished": []}


def alone(own: Wire, worker: LocalWorker, clock: Clock) -> World:
    """A world with a cloud of its own, so that what it holds is the campaign's."""
    return World(own.process, worker, clock)


def drive(world: World, ids: list[Any], rounds: int = 150) -> dict[str, Any]:
    for _ in range(rounds):
        world.step(by=10)
        found = judge(world.cloud, ids)
        if not found["unfinished"]:
            return found
    raise AssertionError(found)


# ---------------------------------------------------------------------- the campaign


@pytest.mark.parametrize("seed", [1, 2])
def test_many_under_many_faults(own: Wire, worker: LocalWorker, clock: Clock, seed: int) -> None:
    world = alone(own, worker, clock)
    ids = start_many(12, world.cloud, seed, breaching=0.3, latest=0)
    world.cloud.faults(error_before=0.1, error_after=0.15, lose_response=0.15, duplicate_events=0.3, seed=seed)
    for _ in range(4):
        world.step(by=5)
    flows.cancel(ids[0])
    flows.supersede(ids[1], goal="another version")
    found = drive(world, ids)
    assert {name: found[name] for name in EMPTY} == EMPTY
    assert found["runs"] == sum(found["outcomes"].values()) == 12
    assert {"complete", "failed/rolled_back"} <= found["outcomes"].keys()
    summary = world.cloud.ledger()["summary"]
    assert (summary["windows"], summary["canaries"], commitments.active()) == ([], [], [])


def test_the_same_call_starts_the_same_runs(world: World) -> None:
    assert start_many(3, world.cloud, 7) == start_many(3, world.cloud, 7)


def test_the_judge_sees_what_is_not_finished_and_what_is_owed(world: World) -> None:
    run = world.start(opens_in=60)
    assert judge(world.cloud, [run.id])["unfinished"] == [f"{run.id}: runnable/reserve/-"]
    world.worker.run()
    found = judge(world.cloud, [run.id])
    assert found["outcomes"] == {"waiting/opened/WAITING": 1}
    assert (len(found["unfinished"]), len(found["live_commitments"]), found["lost"]) == (1, 1, [])
    world.cloud.faults(lose_response=1.0, blind=True)
    flows.cancel(run)
    world.step(by=1)
    assert len(judge(world.cloud, [run.id])["unfinished"]) == 1, "it will be asked about"
    world.finish(run)
    found = judge(world.cloud, [run.id])
    assert (found["outcomes"], found["unfinished"]) == ({"cancelling/opened/HUMAN_REQUIRED": 1}, [])
    assert len(found["live_commitments"]) == 1


def test_the_judge_sees_what_is_claimed_and_not_there(world: World, tmp_path: Path) -> None:
    run = world.start()
    world.reach(run)
    with CloudProcess(tmp_path / "other.db", wrapper=child("--signal", "9", "--")) as other:
        lost = judge(other.client(), [run.id])["lost"]
    assert len([text for text in lost if "not in the ledger" in text]) == 3
    assert len([text for text in lost if "complete without" in text]) == 4


def test_the_judge_sees_what_was_done_twice_and_what_is_held(world: World) -> None:
    run = world.start()
    world.reach(run)
    world.cloud.faults(forget_keys=True)
    world.cloud.reserve(world.service, 30, key=f"{run.id}/reserve/1")
    world.cloud.reserve(world.service, 30, key=f"{run.id}/reserve/2")
    found = judge(world.cloud, [run.id])
    assert found["duplicated"] == [f"{run.id}/reserve/1: 2 times", f"{run.id}: reserve under 2 keys"]
    assert [text for text in found["lost"] if "still holds" in text]


# ---------------------------------------------------------------------- the relay


def test_a_page_that_could_not_be_handed_over_comes_again(world: World, tmp_path: Path) -> None:
    window = world.cloud.reserve(world.service, 5, key=None)
    handed: list[str] = []
    store = tmp_path / "cursor"

    def send(id: str, type: str, **more: Any) -> str:
        handed.append(id)
        if len(handed) == 1:
            raise Transient("the database is away")
        return "kept"

    relay = Relay(world.cloud, send, store)
    relay.feed.cursor = before = world.relay.feed.cursor
    with pytest.raises(Transient):
        relay.look()
    assert (relay.feed.cursor, store.exists()) == (before, False)
    assert relay.look() >= 1
    assert f"window.opened/{window['id']}" in handed
    assert Relay(world.cloud, send, store).feed.cursor == relay.feed.cursor > before
    store.write_text("")
    assert Relay(world.cloud, send, store).feed.cursor == 0


@pytest.mark.parametrize("broken", ["feed", "send"])
def test_a_round_that_fails_does_not_end_the_relay(world: World, seam: Seam, broken: str) -> None:
    ending, handed, faults = threading.Event(), [], [Transient("away")]

    def send(id: str, type: str, **more: Any) -> str:
        if broken == "send" and faults:
            raise faults.pop()
        handed.append(id)
        return "kept"

    def away() -> None:
        if broken == "feed" and faults:
            raise faults.pop()

    seam.at("events", "before", away)
    world.cloud.reserve(world.service, 5, key=None)
    relay = Relay(world.cloud, send)
    thread = threading.Thread(target=relay.run, args=(0.01, ending))
    thread.start()
    until(lambda: handed)
    ending.set()
    thread.join()
    assert faults == []


def test_it_runs_as_a_process(world: World, tmp_path: Path) -> None:
    run = world.start()
    world.worker.run()
    assert flows.get(run.id).node == "opened"
    url = urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}"))
    command = [*child("--signal", "9", "--"), sys.executable, "-m", "project.agents.deployment.relay"]
    options = ["--cloud", world.cloud.address, "--every", "0.05", "--cursor", str(tmp_path / "cursor")]
    with subprocess.Popen([*command, *options], env={**os.environ, "DATABASE_URL": url}) as process:
        try:
            until(lambda: flows.get(run.id).status == "runnable")
            until((tmp_path / "cursor").exists)
        finally:
            process.terminate()
    assert process.returncode == 0
    assert world.reach(run) == ("complete", "done")
