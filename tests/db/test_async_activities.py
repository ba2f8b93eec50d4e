"""Async activity code has everything that an attempt offers: it is called, like any plain function, from inside its event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flows import COMPLETE, Activity, Candidate, Decision, Effect, End, Fresh, Gate
from flows.models import Operation
from flows.services.servicing import run_servicing
from flows.testing import LocalWorker
from tests import factories

pytestmark = pytest.mark.req("B1", "B2")


async def probe(attempt: Any) -> str:
    await asyncio.sleep(0)
    return attempt.flow + " v1"


async def propose(attempt: Any) -> Candidate:
    built = attempt.context(max_tokens=2000)
    await asyncio.sleep(0)
    attempt.record_model("scripted", prompt=built.text, output="x", usage={"input_tokens": 1})
    return Candidate("go", {"hash": built.hash})


async def act(attempt: Any) -> dict[str, Any]:
    said = [attempt.heartbeat(), attempt.note({"half": True})]
    await asyncio.sleep(0)
    attempt.save_checkpoint({"revision": "r1"})
    with attempt.effect("charge", request={"order": 7}) as op:
        await asyncio.sleep(0)
        op.record({"paid": True}, external_id="ch_1")
    await asyncio.sleep(0)
    return {"said": said, "release": attempt.release, "budget": dict(attempt.budget)}


def test_everything_that_an_attempt_offers(worker: LocalWorker, declare: Any) -> None:
    flow = declare(
        "t-async",
        propose=Decision(propose, choices={"go": "act"}),
        act=Activity(act, effects={"charge": Effect()}, gate=Gate(fresh={"main": Fresh(probe)}), then="done"),
        done=End(COMPLETE, result=lambda state: state.results["act"]),
    )
    run = flow.start({})
    worker.run()
    row = factories.row(run)
    assert (row.status, row.result) == ("complete", {"said": ["continue", "continue"], "release": None, "budget": {}})
    assert row.checkpoint == {"revision": "r1"}
    assert Operation.objects.values_list("status", "external_id").get() == ("succeeded", "ch_1")
    assert row.candidates.get().usage["calls"][0]["model"] == "scripted"


def test_an_async_probe_of_an_effect(worker: LocalWorker, declare: Any) -> None:
    """What asks the provider may be async, and reads what the run has recorded."""
    from flows import Happened

    async def reconcile(operation: Any) -> Happened:
        await asyncio.sleep(0)
        return Happened({"order": operation.input["order"]})

    def lost(attempt: Any) -> None:
        raise ConnectionResetError

    flow = declare(
        "t-async-probe",
        pay=Activity(lost, effect=Effect(reconcile=reconcile), then="done"),
        done=End(COMPLETE, result=lambda state: state.results["pay"]),
    )
    run = flow.start({"order": 7})
    worker.run(["agents"])
    run_servicing(worker, worker.using)
    worker.run()
    assert (factories.row(run).status, factories.row(run).result) == ("complete", {"order": 7})
