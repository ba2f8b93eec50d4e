"""A flood of work that takes every slot it can get for as long as the test wants, and one run that holds something meanwhile."""

from __future__ import annotations

from typing import Any

from flows import COMPLETE, ESCALATE, Activity, Commits, Deadline, End, Flow, Servicing, Wait
from tests.support.chaosapp import journal
from tests.support.chaosapp.activities import held, touch


def give_back(operation: Any) -> dict[str, Any]:
    """The release of the hold, idempotent by its operation id."""
    folder = operation.input["folder"]
    if journal.once(folder, operation.id):
        journal.write(folder, journal.DONE, operation.id, operation.id)
    return {"released": operation.of.id}


class Flood(Flow):
    """One activity that runs until the test lets it go."""

    class Meta:
        name = "chaos-flood"

    work = Activity(held, then="done")
    done = End(COMPLETE)


class Holding(Flow):
    """Holds something outside, and sleeps on it."""

    class Meta:
        name = "chaos-holding"

    take = Activity(touch, commits=Commits("hold", release=Servicing(give_back, idempotent=True)), then="rest")
    rest = Wait("chaos.rest", key="never", then="done", deadline=Deadline(days=1, then=ESCALATE))
    done = End(COMPLETE)
