"""One of the flows that the record is full of; its runs were written in bulk, and never ran."""

from __future__ import annotations

from flows import COMPLETE, Activity, Budget, End, Flow, Visits, Wait


def answered(_state: object) -> str:
    """The key of the event."""
    return "answer"


def look(_attempt: object) -> None:
    """Nothing."""


class Many(Flow):
    """It asks, and looks at the answer, again and again."""

    class Meta:
        name = "many-7"
        version = 2
        budget = Budget(model_calls=40)

    ask = Wait("many.answered", key=answered, deadline=None, then="look")
    look = Activity(look, then="ask", visits=Visits(10_000, then="done"))
    done = End(COMPLETE)
