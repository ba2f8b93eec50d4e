"""What is outside: a job that goes on elsewhere, a run without an end, webhooks, and starts that become one."""

from __future__ import annotations

from typing import Any

from flows import (
    COMPLETE,
    ESCALATE,
    Activity,
    Admission,
    Branch,
    ContinueAsNew,
    Deadline,
    End,
    Flow,
    Job,
    Pending,
    Retry,
    Wait,
    minutes,
    seconds,
)
from tests.support.chaosapp import journal
from tests.support.chaosapp.activities import held, touch

DAY = Deadline(days=1, then=ESCALATE)
PATIENT = Retry(max_lost=1000)


def asked(attempt: Any) -> Pending:
    """Never knows: what answers is the event."""
    journal.write(attempt.input["folder"], "asked", attempt.operation_id, attempt.id)
    return Pending()


def given_back(operation: Any) -> None:
    """Nothing is to be given back in these stories: the journal has no folder here, so a call of it is an error."""
    raise AssertionError(f"{operation.id} was given back")


def key_of(state: Any) -> str:
    return str(state.key)


class Building(Flow):
    """Starts a job that is held until the test lets it go, and waits for its event."""

    class Meta:
        name = "chaos-building"

    build = Job(held, event="chaos.built", key=key_of, poll=asked, every=seconds(1), cancel=given_back, deadline=DAY, then="after",
                timeout=minutes(5), retry=PATIENT)  # fmt: skip
    after = Activity(touch, retry=PATIENT, then="done")
    done = End(COMPLETE, result=lambda state: state.results["build"]["answer"]["payload"])


class Endless(Flow):
    """One effect a run, and so many runs after it."""

    class Meta:
        name = "chaos-endless"

    one = Activity(touch, retry=PATIENT, then="more")
    more = Branch(lambda state: "yes" if state.input["left"] else "no", choices={"yes": "next", "no": "done"})
    next = ContinueAsNew(input=lambda state: {**state.input, "left": state.input["left"] - 1})
    done = End(COMPLETE)


class Hooked(Flow):
    """Waits for what a webhook brings."""

    class Meta:
        name = "chaos-hooked"

    hear = Wait("chaos.hooked", key=key_of, deadline=DAY, then="one")
    one = Activity(touch, retry=PATIENT, then="done")
    done = End(COMPLETE, result=lambda state: state.results["hear"]["value"])


class Gathered(Flow):
    """Many starts of a key are one run, with the newest input."""

    class Meta:
        name = "chaos-gathered"
        admission = Admission(debounce=seconds(1), key=lambda given: given["of"])

    one = Activity(touch, retry=PATIENT, then="done")
    done = End(COMPLETE, result=lambda state: {"of": state.input["of"], "n": state.input["n"]})
