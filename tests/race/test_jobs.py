"""The event of a job against the timer and the answer of its poll: one of the two ends it, and it is fulfilled once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import flows
from flows import COMPLETE, Deadline, End, Job, Pending
from flows.core.payload import encode
from flows.core.protocol import AttemptOutcome
from flows.core.state import Completed
from flows.models import Commitment, Workflow
from flows.services.arrows import Ending
from flows.services.proceed import Progress, proceed
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.support.races import racers, together

pytestmark = pytest.mark.req("C1", "G4")

ROUNDS = 60


@pytest.fixture
def job(declare: Any) -> Any:
    made = Job(lambda attempt: 1, event="t.job", key=factories.key_of, poll=lambda attempt: Pending(), cancel=lambda operation: None,
               deadline=Deadline(days=1, then="done"), then="done")  # fmt: skip
    return declare("t-raced-job", job=made, done=End(COMPLETE))


def asked(worker: LocalWorker, clock: Clock, job: Any) -> list[Any]:
    """Runs that are just being asked about."""
    list(job.start_many([(f"{number}", {"key": f"k{number}"}) for number in range(ROUNDS)]))
    worker.run()
    clock.move(minutes=2)
    worker.tick()
    owned = factories.take_up_to(worker, ROUNDS)
    assert len(owned) == ROUNDS
    for one in owned:
        assert factories.enter(one) is Progress.RUN
    return owned


@pytest.mark.parametrize("value", [{"pending": 1}, {"value": "ok", "event": None, "payload": "ok"}], ids=["pending", "answer"])
def test_an_answer_against_the_event(worker: LocalWorker, clock: Clock, job: Any, value: dict[str, Any]) -> None:
    met: Counter[str] = Counter()
    good = Ending(AttemptOutcome.SUCCEEDED, encode(value, "a poll"))
    with racers(2) as (turn, sender):
        for held in asked(worker, clock, job):
            key = held.state.input["key"]
            ended, received = together(
                (turn, lambda held=held: proceed(held, Completed(value), factories.LET_GO, good)),
                (sender, lambda key=key: flows.signal(f"e-{key}", "t.job", key=key)),
            )
            assert ended is Progress.LEFT, ended
            met[received.answer] += 1
    assert sum(met.values()) == ROUNDS
    worker.run()
    assert Counter(Workflow.objects.values_list("status", "owed")) == {("complete", 0): ROUNDS}, met
    assert Counter(Commitment.objects.values_list("status", flat=True)) == {"fulfilled": ROUNDS}
