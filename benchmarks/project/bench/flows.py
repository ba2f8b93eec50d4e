"""The peers' workflows, as an author of Outlast writes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from benchmarks.project.bench.activities import slow_step, step
from flows import COMPLETE, FAIL, Activity, Deadline, End, Flow, Sleep, Wait


def due(state: Any) -> datetime:
    return datetime.fromisoformat(state.input["due"])


def own_key(state: Any) -> str:
    return str(state.input["wid"])


class Bench3(Flow):
    """W1, W2 and the trace: three steps in a row."""

    s1 = Activity(step(1), then="s2")
    s2 = Activity(step(2), then="s3")
    s3 = Activity(step(3), then="done")
    done = End(COMPLETE)


class BenchTick(Flow):
    """W5: three steps of 50 ms."""

    s1 = Activity(slow_step(1), then="s2")
    s2 = Activity(slow_step(2), then="s3")
    s3 = Activity(slow_step(3), then="done")
    done = End(COMPLETE)


class BenchSleep(Flow):
    """W3: asleep until a moment, then one step."""

    nap = Sleep(until=due, then="wake")
    wake = Activity(step("wake"), then="done")
    done = End(COMPLETE)


class BenchSignal(Flow):
    """W4: one step, an event, one step."""

    before = Activity(step("before"), then="go")
    go = Wait("go", key=own_key, deadline=Deadline(minutes=10, then=FAIL), then="after")
    after = Activity(step("after"), then="done")
    done = End(COMPLETE)
