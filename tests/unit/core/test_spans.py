"""A span that no calendar has is refused where it is declared, not when a run begins."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flows.core.effects import Effect, Servicing
from flows.core.errors import DefinitionError
from flows.core.policies import ESCALATE, Deadline, Retry
from flows.core.requirements import Fresh
from flows.core.spans import LONGEST, days, hours, minutes, seconds

NO_NUMBERS = [float("nan"), float("inf"), float("-inf"), 10**15, 10**5000, "x", None, b"x", [], object()]


@pytest.mark.parametrize("make", [days, hours, minutes, seconds, lambda value: Deadline(days=value, then=ESCALATE)])
@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_makes_no_span(make: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(
        DefinitionError, match=r"(Deadline|days|hours|minutes|seconds)\((days=)?…\) (takes numbers|is [\d,]+ days|is .*Write)"
    ):
        make(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda span: Deadline(days=span.days, then=ESCALATE),
        lambda span: Retry(maximum=span),
        lambda span: Fresh(repr, within=span),
        lambda span: Fresh(repr, reuse=span),
        lambda span: Effect(timeout=span),
        lambda span: Effect(grace=span),
        lambda span: Servicing(repr, timeout=span),
        lambda span: days(span.days),
    ],
)
def test_a_span_of_more_than_a_hundred_years(make: Callable[[timedelta], Any]) -> None:
    assert make(LONGEST)
    for span in (LONGEST + timedelta(days=1), timedelta(days=999_999_998)):
        with pytest.raises(DefinitionError, match="days; a span is at most 36,525, a hundred years"):
            make(span)


def test_the_longest_span_leads_to_a_moment() -> None:
    assert datetime(2099, 12, 31, tzinfo=UTC) + LONGEST


@pytest.mark.parametrize("value", [float("nan"), 5, "x", True])
def test_a_freshness_that_is_no_span(value: Any) -> None:
    with pytest.raises(DefinitionError, match=r"Fresh\(within=…\) is .*Write Fresh"):
        Fresh(repr, within=value)
    with pytest.raises(DefinitionError, match=r"Fresh\(reuse=…\) is .*Write Fresh"):
        Fresh(repr, reuse=value)
