"""What the storm is for: runs that take four events each, two of them in any order, and runs that are called by HTTP."""

from __future__ import annotations

from typing import Any

from flows import COMPLETE, FAIL, Deadline, End, Flow, On, Wait

LONG = Deadline(hours=2, then=FAIL)
#: The types of the four events of a run.
TYPES = ("storm.one", "storm.left", "storm.right", "storm.last")
HOOK = "storm.hook"


def own_key(state: Any) -> str:
    return str(state.key)


class StormRun(Flow):
    """One event, two at once, one more."""

    one = Wait(TYPES[0], key=own_key, deadline=LONG, then="both")
    both = Wait(all=[On(TYPES[1], key=own_key), On(TYPES[2], key=own_key)], deadline=LONG, then="last")
    last = Wait(TYPES[3], key=own_key, deadline=LONG, then="done")
    done = End(COMPLETE)


class StormHook(Flow):
    """An event that comes by HTTP."""

    called = Wait(HOOK, key=own_key, deadline=LONG, then="done")
    done = End(COMPLETE)
