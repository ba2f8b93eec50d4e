"""The deployment agent against a real cloud: the good way, the ways out, and every fault of the cloud on the way."""

from __future__ import annotations

from typing import Any

import pytest

import flows
from flows import commitments
from flows.testing import Clock, LocalWorker
from tests.support.cloud import Wire
from tests.support.deploying import *  # noqa: F403 - fixtures are found by their names
from tests.support.deploying import Seam, World

GOOD = ["reserve", "canary", "promote", "release"]
BACK = ["reserve", "canary", "rollback", "release"]


@pytest.mark.req("O6")
def test_the_good_way(world: World) -> None:
    run = world.start()
    assert world.reach(run) == ("complete", "done")
    assert world.did() == GOOD
    assert world.version() == "2.0"
    result = flows.describe(run.id).result
    assert (result["service"], result["version"]) == (world.service, "2.0")
    keys = [effect["key"] for effect in world.cloud.ledger(world.service)["effects"]]
    assert keys == [f"{run.id}/{name}" for name in ("reserve/1", "canary/1", "promote/1", "reserve/1/release/window")]


def test_while_it_waits_the_window_is_owed(world: World) -> None:
    run = world.start(opens_in=3600)
    world.worker.run()
    (held,) = commitments.active(kind="window", workflow=run)
    assert world.cloud.window(held.reference)["state"] == "reserved"
    assert held.terms.keys() == {"service", "opens_at", "closes_at"}
    world.clock.move(hours=5)  # the window never opens, as far as anybody says
    world.worker.tick()
    assert world.reach(run) == ("failed", "gave_up")
    assert world.did() == ["reserve", "release"]


@pytest.mark.parametrize("given", [{"service": ""}, {"minutes": 99999}, {"opens_in": True}, {"cloud": "nowhere"}, {"version": 3}])
def test_what_the_policy_does_not_allow_changes_nothing(world: World, given: dict[str, Any]) -> None:
    run = world.start(**given)
    assert world.reach(run) == ("failed", "gave_up")
    assert world.did() == []
    assert [one["error_code"] for one in flows.describe(run.id).attempts] == ["POLICY_DENIED"]


# ---------------------------------------------------------------------- health and objectives


def test_an_unhealthy_service_is_waited_for_and_then_left_alone(world: World) -> None:
    world.cloud.set_health(world.service, healthy=False)
    run = world.start()
    assert world.reach(run) == ("failed", "gave_up")
    assert world.did() == ["reserve", "release"]
    assert len([step for step in flows.describe(run.id).timeline if step["to_node"] == "recover"]) >= 4


def test_a_service_that_recovers_is_deployed(world: World) -> None:
    world.cloud.set_health(world.service, healthy=False)
    run = world.start()
    world.wait_at("recover", run)
    world.cloud.set_health(world.service, healthy=True)
    assert world.reach(run) == ("complete", "done")


def test_objectives_that_do_not_hold_roll_the_canary_back(world: World) -> None:
    world.cloud.set_slo(world.service, 0.5)
    assert world.reach(world.start()) == ("failed", "rolled_back")
    assert (world.did(), world.version()) == (BACK, None)


def test_what_ran_before_goes_on_after_a_rollback(world: World) -> None:
    assert world.reach(world.start()) == ("complete", "done")
    world.cloud.set_slo(world.service, 0.5)
    assert world.reach(world.start(version="3.0", key="next")) == ("failed", "rolled_back")
    assert world.version() == "2.0"


@pytest.mark.parametrize("gone", ["check", "canary", "promote"])
def test_a_window_that_is_taken_away_ends_it(world: World, seam: Seam, gone: str) -> None:
    run = world.start()
    seam.at(gone, "before", lambda: world.cloud.release(window_of(world), key=None))
    assert world.reach(run) == ("failed", "rolled_back" if gone == "promote" else "gave_up")
    assert world.version() is None


def window_of(world: World) -> str:
    return str(next(e["resource"] for e in world.cloud.ledger(world.service)["effects"] if e["verb"] == "reserve"))


@pytest.mark.parametrize("verb", ["canary", "promote"])
def test_somebody_who_rolls_it_back_by_hand_is_no_obstacle(world: World, seam: Seam, verb: str) -> None:
    run = world.start()
    seam.at("slo" if verb == "canary" else "release", "before", lambda: by_hand(world, run, cancel=verb == "promote"))
    assert world.reach(run)[0] == ("failed" if verb == "canary" else "cancelled")
    assert world.did().count("rollback") == 1


def by_hand(world: World, run: Any, *, cancel: bool) -> None:
    found = next(e["resource"] for e in world.cloud.ledger(world.service)["effects"] if e["verb"] == "canary")
    world.cloud.rollback(str(found), key=None)
    if cancel:
        flows.cancel(run)


# ---------------------------------------------------------------------- faults of the cloud


@pytest.mark.req("B2", "B5")
@pytest.mark.parametrize("fault", ["error_after", "lose_response"])
@pytest.mark.parametrize(("rate", "end", "did"), [(0.0, ("complete", "done"), GOOD), (0.5, ("failed", "rolled_back"), BACK)])
def test_it_was_done_and_nobody_said_so(world: World, fault: str, rate: float, end: tuple[str, str], did: list[str]) -> None:
    world.cloud.set_slo(world.service, rate)
    world.cloud.faults(**{fault: 1.0})
    assert world.reach(world.start()) == end
    assert world.did() == did


def test_errors_before_anything_is_done(world: World) -> None:
    world.cloud.faults(error_before=0.5, seed=3)
    assert world.reach(world.start()) == ("complete", "done")
    assert world.did() == GOOD


@pytest.mark.parametrize("seed", [1, 2])
def test_answers_that_come_too_late(world: World, settings: Any, seed: int) -> None:
    settings.DEPLOYMENT_AGENT_TIMEOUT = 0.1
    world.cloud.faults(slow=0.5, slow_seconds=0.3, seed=seed)
    run = world.start()
    row = world.finish(run, pause=0.05)
    assert (row.status, row.node) == ("complete", "done")
    world.check(run)
    assert world.did() == GOOD


def test_events_that_come_twice_and_out_of_order(world: World) -> None:
    world.cloud.faults(duplicate_events=1.0)
    handed: list[str] = []
    send = world.relay.send

    def count(id: str, type: str, **more: Any) -> Any:
        handed.append(id)
        return send(id, type, **more)

    world.relay.send = count
    assert world.reach(world.start()) == ("complete", "done")
    assert world.did() == GOOD
    assert len(handed) == 2 * len(set(handed)) > 0


def test_a_cloud_that_is_blind_for_a_while(world: World) -> None:
    world.cloud.faults(lose_response=1.0, blind=True)
    run = world.start()
    for _ in range(3):
        world.step(by=2)
        row = flows.get(run.id)
        assert (row.status, row.outcome) == ("reconciling", "RECONCILIATION_REQUIRED")
    world.cloud.faults(lose_response=1.0)
    assert world.reach(run) == ("complete", "done")
    assert world.did() == GOOD


def test_a_cloud_that_stays_blind_is_a_persons(world: World) -> None:
    world.cloud.faults(lose_response=1.0, blind=True)
    run = world.start()
    row = world.finish(run)
    assert (row.status, row.outcome, row.error_code) == ("waiting", "HUMAN_REQUIRED", "OUTCOME_UNKNOWN")
    assert flows.describe(run.id).decision_needed.startswith("a person says whether")


@pytest.mark.parametrize("verb", ["reserve", "canary", "promote", "release"])
def test_a_cloud_that_is_killed_and_comes_back(own: Wire, worker: LocalWorker, clock: Clock, seam: Seam, verb: str) -> None:
    world = World(own.process, worker, clock)
    run = world.start()
    seam.at(verb, "before", own.process.kill)
    world.relay.look()
    worker.run()
    while own.process.running:
        world.relay.look()
        worker.run()
    own.process.start()
    assert world.reach(run) == ("complete", "done")
    assert world.did() == GOOD
