"""The check of the durable clock, against the real function."""

from __future__ import annotations

import pytest

from flows import checks
from flows.testing import Clock


def test_the_plain_clock_is_sound() -> None:
    assert checks.check_clock(databases=["default"]) == []


@pytest.mark.req("C3")
def test_a_clock_that_the_test_kit_moves_is_reported(clock: Clock) -> None:
    (message,) = checks.check_clock(databases=["default"])
    assert message.id == "outlast_flows.W103"
    assert "business time may be moved" in message.msg
