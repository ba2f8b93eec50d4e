"""A flow with one Decision whose attempts do what a test says, and its artifacts."""

from __future__ import annotations

from typing import Any

from flows import COMPLETE, ESCALATE, Activity, Candidate, Deadline, Decision, End, Flow, Retry, Visits, Wait, seconds
from flows.errors import VerificationFailed
from flows.models import Candidate as Row
from tests import factories

HASH = "sha256:" + "a" * 64


def patch(attempt: Any, **value: Any) -> Candidate:
    """A good candidate."""
    return Candidate("patch", {"visit": attempt.visit, **value}, [{"seen": "this"}])


class Decide(Flow):
    """Look, wait for an event, decide, check; a failed check decides again."""

    class Meta:
        name = "t-decide"

    look = Activity(factories.work, then="ask")
    ask = Wait("t.decide", key=factories.key_of, deadline=Deadline(hours=1, then=ESCALATE), then="choose")
    choose = Decision(
        factories.work,
        choices={"patch": "check", "stop": "done"},
        retry=Retry(max_attempts=3, initial=seconds(10), backoff=2, jitter=0, max_lost=3),
        visits=Visits(4, then="done"),
    )
    check = Activity(factories.work, on={VerificationFailed: "choose"}, then="done")
    done = End(COMPLETE)


def rows(run: Any) -> list[Row]:
    """The artifacts of a run, in order."""
    return list(Row.objects.filter(workflow_id=run.id).order_by("id"))
