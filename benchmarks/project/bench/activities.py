"""What every peer's steps do: `step_body` of the shared harness."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.peers.common import W5_STEP_SECS, step_body


def step(number: int | str) -> Callable[[Any], dict[str, Any]]:
    """The activity function of one step."""

    def run(attempt: Any) -> dict[str, Any]:
        return step_body(attempt.input["wid"], number)

    run.__qualname__ = f"step_{number}"
    return run


def slow_step(number: int) -> Callable[[Any], dict[str, Any]]:
    """W5's step, long enough that a kill hits some."""

    def run(attempt: Any) -> dict[str, Any]:
        result = step_body(attempt.input["wid"], number)
        time.sleep(W5_STEP_SECS)
        return result

    run.__qualname__ = f"slow_step_{number}"
    return run
