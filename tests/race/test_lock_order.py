"""The lock order where an arrow carries something along: the channel of the wait that it opens comes before the workflow that it holds."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import flows
from flows import COMPLETE, ESCALATE, FAILED, Activity, Approval, Deadline, End, Gate, Verdict, Wait
from flows.services.proceed import Progress
from flows.store import sql
from flows.testing import LocalWorker
from tests import factories
from tests.support.races import PATIENCE, is_blocked, racers, wait_for

pytestmark = pytest.mark.req("A3", "E1")


def test_a_refusal_that_waits_for_the_channel_it_was_woken_by_does_not_meet_the_next_event(
    worker: LocalWorker, declare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Woken by an event, refused by a gate, and waiting on the same channel again, while that channel's next event arrives."""
    flow = declare(
        "t-again",
        ask=Wait("t.again", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="act"),
        act=Activity(factories.work, gate=Gate(approved_by="allow"), on={Verdict.APPROVAL_REQUIRED: "more"}, then="done"),
        more=Wait("t.again", key="k", deadline=Deadline(hours=1, then=ESCALATE), then="allow"),
        allow=Approval(candidate="ask", role="r", expires=Deadline(hours=1, then=ESCALATE), approved="act", denied="no"),
        done=End(COMPLETE),
        no=End(FAILED),
    )
    run = flow.start({})
    worker.run()
    flows.signal("e1", "t.again", key="k", payload={"n": 1})
    owned = factories.take_one(worker)
    main = threading.get_ident()
    with racers(1) as (other,):
        second: list[Any] = []

        def hold(when: str, name: str) -> None:
            if threading.get_ident() == main and (when, name) == ("within", "lock workflow as seen") and not second:
                second.append(other.do(lambda: flows.signal("e2", "t.again", key="k", payload={"n": 2})))
                wait_for(lambda: second[0].done() or is_blocked(other.pid))

        monkeypatch.setattr(sql, "seam", hold)
        assert factories.enter(owned) is Progress.LEFT
        second[0].result(PATIENCE)
        monkeypatch.setattr(sql, "seam", None)
    worker.run()
    assert factories.status(run)[2] == "allow", "the second event was for the second wait"
    assert flows.describe(run).waits[0].kind == "approval"
