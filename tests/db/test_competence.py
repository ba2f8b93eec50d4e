"""What an author declares of errors is what counts, also where it was changed after some have happened: tightened, and loosened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flows
from flows import COMPLETE, Activity, Competence, Decision, End, Gate, Visits
from flows.core import errors
from flows.models import Competence as Envelope
from flows.services.competence import open_again
from flows.store import gate as store
from flows.testing import LocalWorker
from tests import factories
from tests.factories import row

pytestmark = pytest.mark.req("H1", "B3")

USING = "default"
Declare = Callable[..., type[flows.Flow]]

#: How many verifications fail before one passes.
wrong = {"left": 0}


def check(attempt: Any) -> Any:
    if wrong["left"]:
        wrong["left"] -= 1
        raise errors.VerificationFailed
    return {"passed": True}


def propose(attempt: Any) -> flows.Candidate:
    return flows.Candidate("go", attempt.visit)


def enveloped(declare: Declare, allowed: int) -> type[flows.Flow]:
    return declare(
        "t-allowed",
        propose=Decision(propose, choices={"go": "check"}, visits=Visits(9, then="done")),
        check=Activity(check, verifies="propose", on={errors.VerificationFailed: "propose"}, then="act"),
        act=Activity(
            factories.work, gate=Gate(verified_by="check", competence=Competence("propose", errors=allowed)), then="done"
        ),
        done=End(COMPLETE),
    )


def ended(worker: LocalWorker, flow: type[flows.Flow], failures: int) -> tuple[Any, tuple[str, str | None]]:
    """A run in which so many verifications fail, and where it came to."""
    wrong["left"] = failures
    run = flow.start({})
    worker.run()
    return run, (row(run).status, row(run).error_code)


def envelope() -> tuple[int, int, bool]:
    found = Envelope.objects.get()
    return found.allowed, found.burned, found.closed_at is not None


STOPPED, DONE = ("waiting", "COMPETENCE_EXCEEDED"), ("complete", None)


def test_fewer_errors_declared_count_at_once(worker: LocalWorker, declare: Declare) -> None:
    assert ended(worker, enveloped(declare, 9), 2)[1] == DONE
    assert envelope() == (9, 2, False)
    run, came_to = ended(worker, enveloped(declare, 1), 0)
    assert (came_to, envelope()) == (STOPPED, (1, 2, True)), "no error since, and the two that were are too many now"
    assert open_again("t-allowed", "propose", reason="looked at")
    assert envelope() == (1, 0, False)
    flows.resume(run)
    worker.run()
    assert row(run).status == "complete"
    assert ended(worker, enveloped(declare, 1), 2)[1] == STOPPED


def test_more_errors_declared_open_it(worker: LocalWorker, declare: Declare) -> None:
    run, came_to = ended(worker, enveloped(declare, 1), 2)
    assert (came_to, envelope()) == (STOPPED, (1, 2, True))
    enveloped(declare, 3)
    flows.resume(run)
    worker.run()
    assert (row(run).status, envelope()) == ("complete", (3, 2, False))
    assert ended(worker, enveloped(declare, 3), 2)[1] == STOPPED
    assert envelope() == (3, 4, True)


@pytest.mark.parametrize(("before", "now", "closed"), [(9, 1, True), (1, 9, False), (2, 2, False), (1, 0, True)])
def test_an_error_is_counted_against_what_is_declared_now(transactional_db: None, before: int, now: int, closed: bool) -> None:  # noqa: FBT001
    assert store.burn("t-allowed", "propose", "", before, USING) == (before < 1)
    assert store.burn("t-allowed", "propose", "", now, USING) is closed
    assert envelope() == (now, 2, closed)


def test_since_when_it_is_closed_stays(transactional_db: None) -> None:
    store.burn("t-allowed", "propose", "", 0, USING)
    closed_at = Envelope.objects.get().closed_at
    store.burn("t-allowed", "propose", "", 0, USING)
    assert store.burned("t-allowed", "propose", "", 1, USING) == 2
    assert Envelope.objects.get().closed_at == closed_at
