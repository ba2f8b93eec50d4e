"""The health of a dependency as a state machine, ramps, tokens, and the numbers that cannot be."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows import seconds
from flows.core import capacity as core
from flows.core import declared as declarations
from flows.core.capacity import Dependency, DependencyStatus, Health, Limit, Ramp, Terms
from flows.core.errors import DefinitionError

pytestmark = pytest.mark.req("R1")

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
RUN = UUID(int=7)
TERMS = Terms("payments", rate=200.0, ceiling=50, ramp=Ramp(start=10, factor=2, every=seconds(2)), fails=3)


@pytest.fixture(autouse=True)
def undeclared() -> Any:
    before = list(declarations.DECLARED)
    yield
    declarations.DECLARED[:] = before


def at(second: float) -> datetime:
    return NOW + timedelta(seconds=second)


def down() -> Health:
    return core.went_down(TERMS, Health(), NOW, "CODE")


def test_so_many_failures_within_a_time_mean_down() -> None:
    health = Health()
    for second in (0, 10):
        health = core.failed(TERMS, health, at(second), "CODE")
        assert health.status == DependencyStatus.HEALTHY
    health = core.failed(TERMS, health, at(20), "CODE")
    assert (health.status, health.code, health.probe_at) == (DependencyStatus.DOWN, "CODE", at(50))


def test_failures_far_apart_do_not() -> None:
    health = Health()
    for second in (0, 31, 62, 93):
        health = core.failed(TERMS, health, at(second), "CODE")
    assert (health.status, health.fails) == (DependencyStatus.HEALTHY, 1)


def test_the_pause_doubles_up_to_five_minutes_and_begins_anew_when_all_was_well() -> None:
    health, seen = Health(), []
    for _ in range(6):
        health = core.went_down(TERMS, core.on_trial(health, NOW), NOW, "CODE")
        seen.append(health.delay)
    assert seen == [30, 60, 120, 240, 300, 300]
    well = core.ramped(TERMS, replace(core.recovered(TERMS, health, NOW), allowed=200.0), NOW, waiting=False)
    assert (well.status, well.delay) == (DependencyStatus.HEALTHY, 0)


def test_a_provider_says_when() -> None:
    assert core.went_down(TERMS, Health(), NOW, "CODE", 5).probe_at == at(5)
    assert core.went_down(TERMS, Health(), NOW, "CODE", 1e18).probe_at == NOW + timedelta(days=30)
    assert core.went_down(TERMS, Health(), NOW, "CODE", -5).probe_at == at(30)


def test_on_trial_only_the_one_that_was_let_through_counts() -> None:
    trial = replace(core.on_trial(down(), NOW), trial=(RUN, 3))
    assert core.failed(TERMS, trial, NOW, "CODE", run=uuid4()) == trial
    assert core.failed(TERMS, trial, NOW, "CODE", run=RUN).status == DependencyStatus.DOWN
    assert core.tried(TERMS, trial, NOW, well=True).status == DependencyStatus.RECOVERING
    assert core.tried(TERMS, trial, NOW, well=None).trial is None, "the next one is let through"


def test_a_person_keeps_it_down() -> None:
    held = core.held_down(Health(), NOW, "SAID_DOWN")
    assert (held.status, held.probe_at) == (DependencyStatus.DOWN, None)
    assert core.failed(TERMS, held, NOW, "CODE") == held


@pytest.mark.parametrize(("second", "allowed"), [(0, 10), (1.9, 10), (2, 20), (4, 40), (6, 80), (8, 160), (10, 200), (60, 200)])
def test_the_ramp(second: float, allowed: float) -> None:
    begun = core.recovered(TERMS, down(), NOW)
    assert core.ramped(TERMS, begun, at(second), waiting=True).allowed == allowed


def test_a_ramp_without_a_factor_goes_to_its_rate_at_once() -> None:
    flat = replace(TERMS, ramp=Ramp(start=10, factor=1, every=seconds(2)))
    assert core.ramped(flat, core.recovered(flat, down(), NOW), at(2), waiting=True).allowed == 200


def test_it_is_healthy_when_nobody_waits_at_its_full_rate() -> None:
    begun = core.recovered(TERMS, down(), NOW)
    assert core.ramped(TERMS, begun, at(8), waiting=False).status == DependencyStatus.RECOVERING
    assert core.ramped(TERMS, begun, at(10), waiting=True).status == DependencyStatus.RECOVERING
    assert core.ramped(TERMS, begun, at(10), waiting=False).status == DependencyStatus.HEALTHY


def test_a_failure_while_it_recovers_counts_and_stops_it() -> None:
    health = core.recovered(TERMS, down(), NOW)
    for _ in range(3):
        health = core.failed(TERMS, health, at(1), "CODE")
    assert (health.status, health.allowed, health.delay) == (DependencyStatus.DOWN, 0, 60)


def test_what_a_probe_says() -> None:
    probed = replace(TERMS, probed=True, probe_every=seconds(60))
    assert core.probed(probed, down(), at(40), "").status == DependencyStatus.TRIAL
    worse = core.probed(probed, down(), at(40), "PROBE_FAILED")
    assert (worse.status, worse.probe_at) == (DependencyStatus.DOWN, at(100))
    assert core.probed(probed, Health(), NOW, "").probe_at == at(60)
    assert core.probed(probed, Health(), NOW, "GONE").status == DependencyStatus.DOWN


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["failed", "due", "probe well", "probe ill", "well", "unknown", "ramp", "drained", "down", "up"]),
        st.floats(0, 400, allow_nan=False),
    ),
    max_size=30,
)


@given(STEPS)
def test_whatever_happens_it_lets_through_only_what_its_status_allows(steps: list[tuple[str, float]]) -> None:
    health, now = Health(), NOW
    for what, pause in steps:
        now += timedelta(seconds=pause)
        before = health
        health = after(what, health, now)
        assert health.status in set(DependencyStatus)
        if health.recovering:
            assert 0 < health.allowed <= TERMS.rate
            assert health.allowed >= before.allowed or not before.recovering, "a ramp only rises"
        else:
            assert health.allowed == 0
        assert health.trial is None or health.status == DependencyStatus.TRIAL
        assert health.delay <= core.LONGEST_PAUSE.total_seconds()
        if health.down and what != "down" and not before.down:
            assert health.probe_at is not None, "what went down by itself is looked at again by itself"
        if health.recovering and before.down:
            assert what == "up", "only a person skips the trial"


def after(what: str, health: Health, now: datetime) -> Health:
    match what:
        case "failed":
            return core.failed(TERMS, health, now, "CODE")
        case "due":
            return core.on_trial(health, now) if health.down and health.probe_at and health.probe_at <= now else health
        case "probe well" | "probe ill":
            return core.probed(TERMS, health, now, "" if what == "probe well" else "ILL") if health.probe_at else health
        case "well" | "unknown":
            let = replace(health, trial=(RUN, 1)) if health.status == DependencyStatus.TRIAL else health
            return core.tried(TERMS, let, now, well=True if what == "well" else None)
        case "ramp" | "drained":
            return core.ramped(TERMS, health, now, waiting=what == "ramp")
        case "down":
            return core.held_down(health, now, "SAID")
    return core.recovered(TERMS, health, now) if health.down else health


# ---------------------------------------------------------------- what is declared


def test_names_are_told_apart() -> None:
    assert core.label_of("limit:a", "b") == "limit:a:b"
    with pytest.raises(DefinitionError, match="a name has no colon"):
        Limit("a:b", rate=1)
    with pytest.raises(DefinitionError, match="a name has no colon"):
        Dependency("a:b")


@pytest.mark.parametrize(
    ("thing", "wrong"),
    [
        (lambda: Limit("l"), "limits nothing"),
        (lambda: Limit("l", concurrency=1, burst=2), "has a burst and no rate"),
        (lambda: Limit("l", concurrency=0), "has concurrency=0"),
        (lambda: Limit("l", rate=float("inf")), "has rate=inf"),
        (lambda: Dependency("d", rate=-1), "has rate=-1"),
        (lambda: Dependency("d", ceiling=0), "has ceiling=0"),
        (lambda: Dependency("d", fails=0), "has fails=0"),
        (lambda: Dependency("d", within=seconds(0)), "has within="),
        (lambda: Dependency("d", ramp=Ramp(start=0)), "has ramp.start=0"),
        (lambda: Dependency("d", ramp=Ramp(factor=0.5)), "a ramp with the factor 0.5"),
        (lambda: Dependency("d", ramp=Ramp(every=seconds(0))), "a ramp with every="),
        (lambda: Dependency("d", probe_every=seconds(1)), "has probe_every= and no probe="),
    ],
)
def test_numbers_that_cannot_be(thing: Any, wrong: str) -> None:
    assert any(wrong in one for one in core.faults(thing()))


def test_what_is_right_has_no_faults() -> None:
    assert not list(core.faults(Limit("l", concurrency=3, rate=5, burst=2)))
    assert not list(core.faults(Dependency("d", probe=lambda: True, probe_every=seconds(9))))


@pytest.mark.parametrize("wrong", [{"rate": "1"}, {"ceiling": 1.5}, {"ramp": 3}, {"within": 30}, {"fails": True}])
def test_types_are_looked_at_when_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="Write Dependency"):
        Dependency("d", **wrong)


def test_the_drain_is_bounded_by_rate_and_by_what_runs_at_once() -> None:
    assert core.drain_seconds(20_000, 200, 50, None) == 100
    assert core.drain_seconds(20_000, 200, 50, 0.5) == 200
    assert core.drain_seconds(0, 200, 50, 0.5) == 0


def test_a_limit_of_the_rate_alone_reserves_only_what_has_not_begun() -> None:
    want = core.want_limit(Limit("l", rate=2.5), "k")
    assert (want.size, want.lasting, want.burst, want.label) == (3, False, 1.3, "limit:l:k")
