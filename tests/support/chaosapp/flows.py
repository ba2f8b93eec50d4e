from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Approval,
    Branch,
    Deadline,
    Decision,
    End,
    Escalation,
    Flow,
    Gate,
    Pipeline,
    Retry,
    Reviewers,
    Sleep,
    Step,
    Wait,
    minutes,
    seconds,
)
from tests.support.chaosapp import asked, budgets, fans, flood, moving, outside, patience, released, scarce, sleeper, voyage  # noqa: F401 - their flows are found with these
from tests.support.chaosapp.activities import choose, fatal, hanging, held, shaky, slow, stuck, touch

QUICKLY = Retry(max_attempts=5, initial=timedelta(milliseconds=100), jitter=0)


def key_of(state: Any) -> str:
    return str(state.key)


def moment(state: Any) -> datetime:
    return datetime.fromisoformat(state.input["until"])


class Everything(Flow):
    """Every kind of node once, with a hand-over to another queue."""

    class Meta:
        name = "chaos-everything"
        deadline = Deadline(days=30, then=ESCALATE)

    first = Activity(touch, then="choice")
    choice = Decision(choose, choices={"go": "fork", "stop": "refused"})
    fork = Branch(
        lambda state: "nap" if state.results["choice"]["choice"] == "go" else "end", choices={"nap": "nap", "end": "refused"}
    )
    nap = Sleep(minutes(5), then="early")
    early = Wait("chaos.early", key=key_of, deadline=Deadline(days=1, then=ESCALATE), then="late")
    late = Wait("chaos.late", key=key_of, deadline=Deadline(days=1, then=ESCALATE), then="again")
    again = Activity(shaky, retry=Retry(max_attempts=3), then="line")
    line = Pipeline(Step("one", touch), Step("two", touch), then="elsewhere")
    elsewhere = Activity(touch, queue="cleanup", then="ask")
    ask = Approval(
        candidate="choice",
        steps=[Reviewers("chaos-reviewer"), Reviewers(pool="chaos-pool")],
        escalation=[Escalation("chaos-reviewer", minutes=5)],
        expires=Deadline(days=1, then=ESCALATE),
        approved="act",
        denied="refused",
    )
    act = Activity(touch, gate=Gate(approved_by="ask"), then="done")
    done = End(COMPLETE, result=lambda state: state.results["act"])
    refused = End(FAILED)


class Three(Flow):
    """Three effects, one after another."""

    class Meta:
        name = "chaos-three"

    one = Activity(touch, then="two")
    two = Activity(touch, then="three")
    three = Activity(touch, then="done")
    done = End(COMPLETE)


class Held(Flow):
    """Works in its second step until the test lets it go."""

    class Meta:
        name = "chaos-held"

    one = Activity(touch, then="two")
    two = Activity(held, timeout=minutes(5), then="three")
    three = Activity(touch, then="done")
    done = End(COMPLETE)


class HeldTwice(Flow):
    """Works in both of its steps until the test lets it go."""

    class Meta:
        name = "chaos-held-twice"

    one = Activity(held, timeout=minutes(5), then="two")
    two = Activity(held, timeout=minutes(5), then="done")
    done = End(COMPLETE)


class Nap(Flow):
    """Sleeps until a moment of the input."""

    class Meta:
        name = "chaos-nap"

    nap = Sleep(until=moment, then="after")
    after = Activity(touch, then="done")
    done = End(COMPLETE)


class LongNap(Flow):
    """Sleeps for a while that only a moved clock brings to its end."""

    class Meta:
        name = "chaos-long-nap"

    before = Activity(touch, then="nap")
    nap = Sleep(minutes(40), then="after")
    after = Activity(touch, then="done")
    done = End(COMPLETE)


class Load(Flow):
    """Everyday work: effects, a failure, a short sleep, an event."""

    class Meta:
        name = "chaos-load"

    one = Activity(touch, then="two")
    two = Activity(slow, retry=QUICKLY, then="three")
    three = Activity(shaky, retry=QUICKLY, then="nap")
    nap = Sleep(seconds(0.3), then="hear")
    hear = Wait("chaos.load", key=key_of, deadline=Deadline(days=1, then=ESCALATE), then="four")
    four = Activity(touch, then="done")
    done = End(COMPLETE)


class Hanging(Flow):
    """Its step does not return the first time; the timeout ends the attempt."""

    class Meta:
        name = "chaos-hanging"

    step = Activity(hanging, timeout=seconds(1), retry=QUICKLY, then="done")
    done = End(COMPLETE)


class Stuck(Flow):
    """Its step does not return the first time, and cannot be interrupted."""

    class Meta:
        name = "chaos-stuck"

    step = Activity(stuck, timeout=seconds(1), retry=QUICKLY, then="done")
    done = End(COMPLETE)


class Fatal(Flow):
    """Its step takes the process down the first time."""

    class Meta:
        name = "chaos-fatal"

    step = Activity(fatal, then="done")
    done = End(COMPLETE)
