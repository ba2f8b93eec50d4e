"""A flow that does nothing but wait while its deadlines pass, one kind after another, and the story of a run: nobody answers it.

 5 min   SLA "answer"       BREACH: goes on
15 min   freshness          decides anew            30 min   again, and its visits are spent: it waits elsewhere
35 min   SLA "done"         DEGRADE: what is optional is dropped
45 min   the workflow       RELEASE to `late`: the cabin is given back, and the run ends
"""

from __future__ import annotations

from typing import Any

from flows import (
    BREACH,
    COMPLETE,
    DEGRADE,
    RELEASE,
    Activity,
    Commits,
    Deadline,
    Decision,
    End,
    Flow,
    Fresh,
    Gate,
    Servicing,
    Visits,
    Wait,
    minutes,
)
from flows.testing import Clock, TimeLapse, timelapse
from tests.support.chaosapp import journal
from tests.support.chaosapp.activities import choose, touch

DONE = ("hold/1", "look/1", "look/2", "late/1", "hold/1/release/cabin")
EXPIRED = [("SLA", "answer"), ("SLA", "done"), ("freshness", "main"), ("freshness", "main"), ("workflow", "")]


def give_back(operation: Any) -> dict[str, str]:
    """Idempotent by its operation id."""
    folder = operation.input["folder"]
    if journal.once(folder, operation.id):
        journal.write(folder, journal.DONE, operation.id, operation.headers["Outlast-Attempt"])
    return {"receipt": operation.id}


def head(attempt: Any) -> str:
    return "always the same"


class Patience(Flow):
    """Waits, and is not answered."""

    class Meta:
        name = "chaos-patience"
        deadline = Deadline(minutes=45, then=RELEASE, to="late")
        sla = {"answer": Deadline(minutes=5, then=BREACH), "done": Deadline(minutes=35, then=DEGRADE)}

    hold = Activity(touch, commits=Commits("cabin", release=Servicing(give_back, idempotent=True)), then="look")
    look = Decision(choose, choices={"go": "ask", "stop": "late"}, visits=Visits(2, then="elsewhere"))
    ask = Wait("chaos.never", key=lambda state: str(state.key), then="act", deadline=Deadline(days=9, then="late"))
    elsewhere = Wait("chaos.never", key=lambda state: str(state.key), then="act", deadline=Deadline(days=9, then="late"))
    act = Activity(touch, gate=Gate(fresh={"main": Fresh(head, within=minutes(15), then="look")}), then="extra")
    late = Activity(touch, then="extra")
    extra = Activity(touch, optional=True, then="done")
    done = End(COMPLETE)


def patience(folder: str, key: str) -> None:
    """One run, to its end, with a worker of both kinds."""
    from tests.support.chaosapp.stories import taking_over

    with taking_over() as worker:
        run = Patience.start({"folder": folder}, key=key)
        with timelapse(Clock("default"), act=lambda: (worker.run(), worker.tick())) as lapse:
            to_the_end(lapse, run)


def to_the_end(lapse: TimeLapse, run: Any) -> None:
    lapse.until(run, status="complete")
