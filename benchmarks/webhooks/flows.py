"""A flow that waits for one webhook."""

from __future__ import annotations

from typing import Any

from flows import COMPLETE, ESCALATE, Deadline, End, Flow, Wait


def key(state: Any) -> str:
    """The run's own."""
    return str(state.input["key"])


class Stormed(Flow):
    """Waits for what somebody says, and ends with it."""

    class Meta:
        name = "bench-stormed"

    said = Wait("storm.said", key=key, deadline=Deadline(hours=1, then=ESCALATE), then="done")
    done = End(COMPLETE)
