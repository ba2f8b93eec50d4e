"""Policies are checked when they are made, and say what they expect."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from datetime import timedelta
from typing import Any

import pytest

from flows.core.errors import DefinitionError
from flows.core.policies import CANCEL, ESCALATE, FAIL, Checkpoint, Deadline, Retry, Visits
from flows.core.spans import days, hours, minutes, seconds


def test_spans_are_ordinary_timedeltas() -> None:
    assert seconds(90) == minutes(1.5) == timedelta(seconds=90)
    assert hours(24) == days(1) == timedelta(days=1)


def test_a_deadline_adds_its_units() -> None:
    assert Deadline(days=1, hours=2, minutes=3, seconds=4, then=FAIL).after == timedelta(days=1, hours=2, minutes=3, seconds=4)


@pytest.mark.parametrize("policy", [ESCALATE, CANCEL, FAIL])
def test_a_deadline_with_a_policy_names_no_node(policy: Any) -> None:
    assert Deadline(hours=1, then=policy).expiry is policy


@pytest.mark.parametrize("node", ["gave_up", "escalate"])
def test_a_deadline_with_a_text_names_a_node_whatever_the_text_is(node: str) -> None:
    deadline = Deadline(hours=1, then=node)
    assert deadline.expiry is None
    assert deadline.then == node


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Deadline(then=FAIL), "A Deadline needs a span: Deadline(hours=2, then=ESCALATE)."),
        (lambda: Deadline(hours=-1, then=FAIL), "A Deadline needs a span: Deadline(hours=2, then=ESCALATE)."),
        (lambda: Retry(max_attempts=0), "Retry(max_attempts=…) counts the first try too: at least 1."),
        (lambda: Retry(max_lost=-1), "Retry(max_lost=…) must not be negative."),
        (lambda: Retry(initial=seconds(-1)), "Retry delays: 0 <= initial <= maximum."),
        (lambda: Retry(initial=minutes(10), maximum=minutes(5)), "Retry delays: 0 <= initial <= maximum."),
        (lambda: Retry(backoff=0.5), "Retry(backoff=…) is at least 1 and jitter between 0 and 1."),
        (lambda: Retry(backoff=math.nan), "Retry(backoff=…) is at least 1 and jitter between 0 and 1."),
        (lambda: Retry(backoff=math.inf), "Retry(backoff=…) is at least 1 and jitter between 0 and 1."),
        (lambda: Retry(jitter=1.1), "Retry(backoff=…) is at least 1 and jitter between 0 and 1."),
        (lambda: Retry(jitter=math.nan), "Retry(backoff=…) is at least 1 and jitter between 0 and 1."),
        (lambda: Visits(0, then="done"), "Visits(n, then=…) needs n of at least 1."),
    ],
)
def test_a_policy_that_means_nothing_is_refused_with_what_is_meant(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.req("B3")
def test_a_retry_always_has_a_last_attempt() -> None:
    assert Retry().max_attempts == 3
    assert Retry().max_lost == 10
    with pytest.raises(DefinitionError, match="is None, which is a NoneType"):
        Retry(max_attempts=None)  # type: ignore[arg-type]


def test_a_checkpoint_is_bounded_by_default() -> None:
    assert Checkpoint().max_bytes == 16 * 1024


def test_policies_cannot_be_changed_afterwards() -> None:
    for policy in (Deadline(hours=1, then=FAIL), Retry(), Visits(1, "x"), Checkpoint()):
        for field in fields(policy):
            with pytest.raises(FrozenInstanceError):
                setattr(policy, field.name, None)
