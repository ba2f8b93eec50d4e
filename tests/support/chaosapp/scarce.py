"""Two runs of a flow that takes one at a time: its provider has no capacity at first, and its last step counts in a limit."""

from __future__ import annotations

from typing import Any

from flows import COMPLETE, Activity, Admission, Dependency, End, Flow, Limit, Ramp, Retry
from flows.errors import CapacityUnavailable
from tests.support.chaosapp import journal

PATIENT = Retry(max_lost=1000)
ROUNDS = 60
#: Seconds after which it is tried again: before the next look of the clock, in any case.
AT_ONCE = 1e-6

Dependency("chaos-provider", rate=10_000, ceiling=1, ramp=Ramp(start=10_000), fails=1)
Limit("chaos-limit", concurrency=1)


def call(attempt: Any) -> None:
    """The first call of each run finds no capacity."""
    journal.write(attempt.input["folder"], journal.CALLED, attempt.operation_id, attempt.id)
    if journal.once(attempt.input["folder"], attempt.workflow_id):
        raise CapacityUnavailable(retry_after=AT_ONCE)


def last(attempt: Any) -> None: ...


class Scarce(Flow):
    """Calls a provider, then counts in a limit."""

    class Meta:
        name = "chaos-scarce"
        admission = Admission(total=1)

    call = Activity(call, needs="chaos-provider", retry=PATIENT, then="last")
    last = Activity(last, limits="chaos-limit", retry=PATIENT, then="done")
    done = End(COMPLETE)


def scarce(folder: str, key: str) -> None:
    """Told again after any crash: the clock lets in whoever waits."""
    from flows.models import Workflow
    from tests.support.chaosapp.stories import ENDED, NotToBeEnded, taking_over

    with taking_over() as worker:
        runs = [Scarce.start({"folder": folder}, key=f"{key}/{number}").id for number in range(2)]
        for _ in range(ROUNDS):
            worker.run()
            worker.tick()
            rows = list(Workflow.objects.filter(pk__in=runs))
            if all(row.status in ENDED for row in rows):
                return
            if stuck := [row for row in rows if row.outcome == "HUMAN_REQUIRED"]:
                raise NotToBeEnded(f"{stuck[0].error_code} at {stuck[0].node}")
        raise NotToBeEnded(f"{[(row.status, row.node) for row in rows]} after {ROUNDS} rounds")
