"""Retries: within the policy's bounds, jittered around the plan, and never for what retrying cannot mend."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.core.errors import ActivityTimeout, CapacityUnavailable, PayloadError, PolicyDenied, StateConflict, Transient, classify
from flows.core.policies import Retry
from flows.core.retry import LONGEST_RETRY_AFTER, delay_before, may_retry, timeout_failure
from flows.core.spans import seconds

pytestmark = pytest.mark.req("B3")

policies = st.builds(
    lambda first, more, backoff, jitter: Retry(initial=first, maximum=first + more, backoff=backoff, jitter=jitter),
    st.timedeltas(timedelta(0), timedelta(hours=1)),
    st.timedeltas(timedelta(0), timedelta(days=1)),
    st.floats(1, 100),
    st.floats(0, 1),
)
chance = st.floats(0, 1, exclude_max=True)


@given(policies, st.integers(1, 5000), chance)
def test_a_delay_is_never_negative_and_never_over_the_maximum(policy: Retry, failures: int, dice: float) -> None:
    assert timedelta(0) <= delay_before(policy, failures, dice) <= policy.maximum


@given(policies, st.integers(1, 20))
def test_without_luck_either_way_the_delay_is_the_planned_one(policy: Retry, failures: int) -> None:
    planned = min(policy.initial.total_seconds() * policy.backoff ** (failures - 1), policy.maximum.total_seconds())
    assert delay_before(policy, failures, 0.5).total_seconds() == pytest.approx(planned, abs=2e-6)


@given(policies, st.integers(1, 20), chance)
def test_jitter_moves_the_delay_by_its_share_at_most(policy: Retry, failures: int, dice: float) -> None:
    planned = delay_before(policy, failures, 0.5).total_seconds()
    assert abs(delay_before(policy, failures, dice).total_seconds() - planned) <= planned * policy.jitter + 2e-6


def test_delays_double_up_to_the_maximum() -> None:
    policy = Retry(initial=seconds(1), maximum=seconds(10), jitter=0)
    assert [delay_before(policy, n, 0.9).total_seconds() for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_many_failures_do_not_overflow() -> None:
    assert delay_before(Retry(max_attempts=10_000, jitter=0), 9_999, 0.5) == Retry().maximum
    assert delay_before(Retry(initial=seconds(0), jitter=0), 9_999, 0.5) == timedelta(0)


@given(policies, st.integers(1, 50), chance, st.floats(0, 1e6))
def test_a_providers_wish_is_a_lower_bound_even_over_the_maximum(policy: Retry, failures: int, dice: float, wish: float) -> None:
    assert delay_before(policy, failures, dice, wish).total_seconds() >= wish - 1e-6


@pytest.mark.parametrize("wish", [1e18, float("inf")])
def test_a_providers_absurd_wish_is_cut(wish: float) -> None:
    assert delay_before(Retry(), 1, 0.5, wish) == LONGEST_RETRY_AFTER


@pytest.mark.parametrize("wish", [None, 0.0, -5.0, float("nan")])
def test_a_providers_empty_wish_changes_nothing(wish: float | None) -> None:
    assert delay_before(Retry(jitter=0), 1, 0.5, wish) == seconds(1)


class Flaky(Exception):
    pass


class FlakyNetwork(Flaky):
    pass


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Transient(), True),
        (ActivityTimeout(), True),
        (Flaky(), True),
        (CapacityUnavailable(), False),
        (StateConflict(), False),
        (PolicyDenied(), False),
        (PayloadError("it", "is odd"), False),
    ],
)
def test_the_taxonomy_says_what_may_be_tried_again(error: Exception, *, again: bool) -> None:
    assert may_retry(Retry(), classify(error)) is again


def test_a_class_that_the_policy_names_may_be_tried_again_whatever_its_route() -> None:
    assert may_retry(Retry(retry_on=(StateConflict,)), classify(StateConflict()))


def test_naming_a_base_class_covers_its_subclasses() -> None:
    assert not may_retry(Retry(never_on=(Flaky,)), classify(FlakyNetwork()))
    assert may_retry(Retry(never_on=(FlakyNetwork,)), classify(Flaky()))


def test_never_wins_over_retry() -> None:
    assert not may_retry(Retry(retry_on=(Flaky,), never_on=(FlakyNetwork,)), classify(FlakyNetwork()))


def test_a_timeout_from_outside_is_the_same_failure_as_one_from_inside() -> None:
    assert timeout_failure().code == classify(ActivityTimeout()).code
    assert timeout_failure().route == classify(ActivityTimeout()).route
    assert may_retry(Retry(retry_on=(ActivityTimeout,)), timeout_failure())
    assert not may_retry(Retry(never_on=(ActivityTimeout,)), timeout_failure())
