"""Recorded ways of every kind: steps, an event and a branch that goes round, a pipeline that fails once, an approval of a candidate."""

from __future__ import annotations

from typing import Any

from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Approval,
    Branch,
    Candidate,
    Deadline,
    Decision,
    End,
    Flow,
    Gate,
    Pipeline,
    Retry,
    State,
    Step,
    Visits,
    Wait,
    seconds,
)
from flows.errors import Transient

ROLE = "replaying"
DAY = Deadline(days=1, then=ESCALATE)


def step(attempt: Any) -> dict[str, Any]:
    """About two hundred bytes, as the steps of the other benchmarks."""
    return {"node": attempt.node, "visit": attempt.visit, "text": "x" * 160}


def fails_once(attempt: Any) -> dict[str, Any]:
    """The second try is good."""
    if attempt.number == 1:
        raise Transient
    return step(attempt)


def propose(attempt: Any) -> Candidate:
    return Candidate("go", {"visit": attempt.visit, "text": "x" * 160}, evidence={"why": "y" * 160})


def key(state: State) -> str:
    return str(state.key)


def round_again(state: State) -> str:
    return "again" if state.visits["work"] < 3 else "on"


class ReplayLine(Flow):
    one = Activity(step, then="two")
    two = Activity(step, then="three")
    three = Activity(step, then="done")
    done = End(COMPLETE, result=lambda state: state.results["three"])


class ReplayRound(Flow):
    ask = Wait("replay.asked", key=key, read=lambda state: state.event["payload"]["says"], choices={"yes": "work"}, deadline=DAY)
    work = Activity(step, visits=Visits(5, then="done"), then="which")
    which = Branch(round_again, choices={"again": "work", "on": "done"})
    done = End(COMPLETE)


class ReplayPipe(Flow):
    line = Pipeline(
        Step("a", step), Step("b", fails_once), Step("c", step), retry=Retry(initial=seconds(0), jitter=0), then="done"
    )
    done = End(COMPLETE, result=lambda state: state.results["line"])


class ReplayApproved(Flow):
    propose = Decision(propose, choices={"go": "ask"}, visits=Visits(3, then="no"))
    ask = Approval(candidate="propose", role=ROLE, expires=DAY, approved="do", changes="propose", denied="no")
    do = Activity(step, gate=Gate(approved_by="ask"), then="done")
    done = End(COMPLETE)
    no = End(FAILED)
