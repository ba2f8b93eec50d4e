"""The flows of these suites are sound by the product's own checks, so that nobody's test of the checks trips over them."""

from __future__ import annotations

import pytest

from flows import Flow
from flows.core import lint
from tests.factories import STANDARD


@pytest.mark.parametrize("flow", STANDARD, ids=lambda flow: flow.definition.name)
def test_the_flows_of_the_tests_have_no_problems(flow: type[Flow]) -> None:
    assert lint.problems(flow.definition) == []
