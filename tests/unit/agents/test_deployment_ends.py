"""Cancelled or superseded at any moment, a deployment leaves no window, no canary, no promotion, and no doubt."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import flows
from flows import DidNotHappen, Happened, commitments
from flows.errors import CompetenceFailure
from project.agents.deployment.servicing import find_release, find_rollback, release_window, roll_back
from tests.support.deploying import *  # noqa: F403 - fixtures are found by their names
from tests.support.deploying import Seam, World

pytestmark = pytest.mark.req("B6", "J1", "K1")

VERBS = ["reserve", "check", "canary", "slo", "promote", "rollback", "release"]
HOW: dict[str, Callable[[Any], Any]] = {
    "cancelled": lambda run: flows.cancel(run, reason="no longer wanted"),
    "superseded": lambda run: flows.supersede(run, goal="another version"),
}


@pytest.fixture(params=HOW)
def end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("when", ["before", "after", "lost"])
@pytest.mark.parametrize("verb", VERBS)
def test_at_every_call(world: World, seam: Seam, end: str, verb: str, when: str) -> None:
    if verb == "rollback":
        world.cloud.set_slo(world.service, 0.5)
    run = world.start()
    answers: list[Any] = []
    seam.at(verb, when, lambda: answers.append(HOW[end](run).answer))
    assert world.reach(run)[0] == end
    assert answers == ["accepted"]
    assert world.version() is None
    done = world.did()
    assert done.count("release") == 1
    assert done.count("rollback") == done.count("canary") <= 1
    assert HOW["cancelled"](run).answer == ("already" if end == "cancelled" else "too_late")


@pytest.mark.parametrize("node", ["opened", "recover", "observe"])
def test_at_every_wait(world: World, end: str, node: str) -> None:
    if node == "recover":
        world.cloud.set_health(world.service, healthy=False)
    run = world.start()
    world.wait_at(node, run)
    assert HOW[end](run)
    assert world.reach(run)[0] == end
    assert world.did() == ["reserve", *(["canary", "rollback"] if node == "observe" else []), "release"]


def test_before_it_has_begun(world: World, end: str) -> None:
    run = world.start()
    assert HOW[end](run)
    assert world.reach(run)[0] == end
    assert world.did() == []


def test_after_its_good_end_it_is_too_late(world: World, end: str) -> None:
    run = world.start()
    assert world.reach(run) == ("complete", "done")
    HOW[end](run)
    world.step()
    assert (flows.get(run.id).status, world.version()) == ("complete", "2.0")


@pytest.mark.parametrize("verb", ["reserve", "canary", "promote"])
def test_while_nobody_knows_whether_it_happened(world: World, seam: Seam, end: str, verb: str) -> None:
    """The cloud is blind: nothing is undone before it is known what there is to undo."""
    run = world.start()
    seam.at(verb, "lost", lambda: world.cloud.faults(blind=True))
    for _ in range(4):
        world.relay.look()
        world.worker.run()
    assert flows.get(run.id).status == "reconciling"
    assert HOW[end](run)
    world.step()
    assert flows.get(run.id).status == "cancelling"
    assert "rollback" not in world.did()
    assert len(commitments.active(kind="window")) == 1
    world.cloud.faults()
    assert world.reach(run)[0] == end
    assert world.version() is None


@pytest.mark.parametrize("fault", ["error_before", "error_after", "lose_response"])
def test_though_the_cloud_does_its_worst_meanwhile(world: World, seam: Seam, end: str, fault: str) -> None:
    run = world.start()

    def worst() -> None:
        world.cloud.faults(**{fault: 0.7}, seed=11)
        HOW[end](run)

    seam.at("promote", "after", worst)
    assert world.reach(run)[0] == end
    assert world.did() == ["reserve", "canary", "promote", "rollback", "release"]
    assert world.version() is None


@pytest.mark.parametrize("verb", ["reserve", "canary", "promote"])
def test_while_the_cloud_is_slower_than_its_client(world: World, seam: Seam, settings: Any, verb: str) -> None:
    settings.DEPLOYMENT_AGENT_TIMEOUT = 0.1
    run = world.start()

    def late() -> None:
        world.cloud.faults(slow=0.5, slow_seconds=0.3, seed=4)
        flows.cancel(run)

    seam.at(verb, "before", late)
    assert world.finish(run, pause=0.05).status == "cancelled"
    world.check(run)
    assert world.version() is None


def test_what_runs_in_place_of_a_promotion_is_left_running(world: World, seam: Seam) -> None:
    """A newer promotion has replaced ours: there is nothing of ours to take back, and the newer one is not touched."""
    run = world.start()

    def newer() -> None:
        window = world.cloud.reserve(world.service, 5, key=None)["id"]
        world.cloud.promote(world.cloud.canary(world.service, "9.9", window, key=None)["id"], key=None)
        world.cloud.release(window, key=None)
        flows.cancel(run)

    seam.at("promote", "after", newer)
    assert world.reach(run)[0] == "cancelled"
    assert world.version() == "9.9"
    assert "rollback" not in world.did()


def test_servicing_asks_the_cloud_for_what_a_person_has_not_named(world: World) -> None:
    """Somebody has said that it happened, without the cloud's answer as evidence; or that it did, and it did not."""

    def operation(name: str, of: str) -> Any:
        effect = SimpleNamespace(id=f"{world.service}/{of}", external_id="", evidence=None)
        return SimpleNamespace(id=f"{world.service}/{name}", input={"cloud": world.cloud.address}, reference="", of=effect)

    window = world.cloud.reserve(world.service, 30, key=f"{world.service}/reserve")["id"]
    canary = world.cloud.canary(world.service, "2.0", window, key=f"{world.service}/canary")["id"]
    assert roll_back(operation("back", "canary"))["id"] == canary
    assert roll_back(operation("again", "canary")) == {"id": canary, "already": "rolled_back"}
    assert find_rollback(operation("asked", "canary")) == Happened({"id": canary, "already": "rolled_back"})
    assert release_window(operation("free", "reserve"))["id"] == window
    assert release_window(operation("more", "reserve")) == {"id": window, "already": "released"}
    assert find_release(operation("asked", "reserve")) == Happened({"id": window, "already": "released"})
    assert roll_back(operation("x", "nothing")) == {"already": "absent"}
    assert release_window(operation("y", "nothing")) == {"already": "absent"}
    assert find_release(operation("z", "nothing")) == DidNotHappen()


def test_a_window_that_is_over_needs_no_release(world: World, end: str, seam: Seam) -> None:
    run = world.start(minutes=0)
    world.worker.run()
    HOW[end](run)
    assert world.reach(run)[0] == end
    assert world.did() == ["reserve"]


def test_what_has_certainly_not_begun_is_not_owed(world: World, seam: Seam) -> None:
    run = world.start()

    def refuse() -> None:
        raise CompetenceFailure("the cloud does not understand the request")

    seam.at("reserve", "before", refuse)
    world.worker.run()
    assert flows.get(run.id).outcome == "HUMAN_REQUIRED"
    assert commitments.active() == []
