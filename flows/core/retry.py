"""What a failure leads to: (policy, failure, history) → retry, or a code to stop with. Pure; chance is an argument."""

from __future__ import annotations

from datetime import timedelta

from flows.core.errors import ActivityTimeout, Failure, Route
from flows.core.policies import Retry

#: What a provider may ask for at most; a date in the far future is a fault of its own.
LONGEST_RETRY_AFTER = timedelta(days=30)


def delay_before(policy: Retry, failures: int, dice: float, retry_after: float | None = None) -> timedelta:
    """The pause before the next try after `failures` failures (1 or more), with jitter spread evenly around the planned delay.

    A provider's `retry_after` is a lower bound and may exceed the policy's maximum.
    """
    initial, maximum = policy.initial.total_seconds(), policy.maximum.total_seconds()
    try:
        planned = min(initial * policy.backoff ** (failures - 1), maximum)
    except OverflowError:
        planned = maximum if initial else 0.0
    spread = planned * (1 + policy.jitter * (2 * dice - 1))
    asked = min(retry_after or 0.0, LONGEST_RETRY_AFTER.total_seconds())
    return timedelta(seconds=max(min(spread, maximum), asked))


def may_retry(policy: Retry, failure: Failure) -> bool:
    """Whether this class of failure may be tried again at all. Naming a class on the policy wins over the taxonomy."""
    names = set(failure.classes)
    if names & {error.__name__ for error in policy.never_on}:
        return False
    if names & {error.__name__ for error in policy.retry_on}:
        return True
    return failure.route is Route.RETRY


def timeout_failure() -> Failure:
    """The failure of an attempt that ran out of time."""
    return Failure(
        ActivityTimeout.code,
        ActivityTimeout.route,
        tuple(c.__name__ for c in ActivityTimeout.__mro__ if c is not object),
    )
