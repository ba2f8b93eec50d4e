"""Releases R17 and R18, a flow that can be woken in every way, and short ways to look at what became of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flows
from flows import COMPLETE, FAILED, Activity, Deadline, Effect, End, Flow, Retry, Sleep, Visits, Wait, hours, releases, seconds
from flows.core.errors import Transient
from flows.core.verdicts import Verdict
from flows.models import Release, Transition, Workflow
from flows.testing import Clock, LocalWorker
from tests import factories
from tests.factories import failing, key_of, row, work
from tests.support import approving

PROMPTS = {"R17": "Plan it.", "R18": "Plan it, and say why."}


def register(name: str, compatible_with: list[str] | None = None, prompt: str = "") -> Release:
    return releases.register(
        name,
        models={"planner": "m-1"},
        prompts={"plan": prompt or PROMPTS.get(name, name)},
        compatible_with=compatible_with or [],
    )


def both(*, compatible: bool = False) -> None:
    """R17 and R18 are registered, and R17 is current."""
    register("R17")
    register("R18", ["R17"] if compatible else [])
    now_is("R17")


def now_is(name: str | None, flow: Any = None) -> None:
    releases.make_current(name, flow=flow, by=None, reason="a test")


def flow_of(declare: Callable[..., type[Flow]], on_release: Any, **meta: Any) -> type[Flow]:
    """Plan ─► wait for an event ─► sleep ─► act (tried again) ─► done; `again` is a boundary that only a restart leads to."""
    return declare(
        "t-released",
        meta={"on_release": on_release, **meta},
        plan=Activity(work, visits=Visits(5, then="over"), then="ask"),
        ask=Wait("t.rel", key=key_of, deadline=Deadline(hours=4, then="over"), then="nap"),
        nap=Sleep(hours(1), then="act"),
        act=Activity(work, retry=Retry(max_attempts=3, initial=seconds(10), jitter=0), then="done"),
        again=Activity(work, then="nap"),
        done=End(COMPLETE, result=lambda state: sorted(state.results)),
        over=End(FAILED),
    )


def routed_flow(declare: Callable[..., type[Flow]], on_release: Any) -> type[Flow]:
    """The wait declares where an incompatible release leads to."""
    return declare(
        "t-routed",
        meta={"on_release": on_release},
        plan=Activity(work, visits=Visits(5, then="over"), then="ask"),
        ask=Wait(
            "t.rel", key=key_of, deadline=Deadline(hours=4, then="over"), on={Verdict.RELEASE_INCOMPATIBLE: "plan"}, then="act"
        ),
        act=Activity(work, then="done"),
        done=End(COMPLETE),
        over=End(FAILED),
    )


def paying_flow(declare: Callable[..., type[Flow]], on_release: Any) -> type[Flow]:
    """An effect that may be asked for twice, and whose answer gets lost."""
    return declare(
        "t-paying",
        meta={"on_release": on_release},
        plan=Activity(work, then="pay"),
        pay=Activity(
            work, effect=Effect(idempotent=True), retry=Retry(max_attempts=5, initial=seconds(10), jitter=0), then="done"
        ),
        done=End(COMPLETE),
    )


def pins(run: Any) -> list[tuple[str, str, str]]:
    """(status, from, to) of every pin in the log."""
    found = Transition.objects.filter(workflow_id=run.id, trigger="pin").order_by("seq")
    return [(one.to_status, one.note["release"]["from"], one.note["release"]["to"]) for one in found]


def is_at(run: Any) -> tuple[str, str, str, str | None]:
    """(status, node, release, code) of a run."""
    found = row(run)
    return found.status, found.node, found.release, found.error_code


def answer(run: Any) -> None:
    """The event of the first wait arrives."""
    flows.signal(f"e-{row(run).pk}-{row(run).version}", "t.rel", key=key(run), payload={})


def key(run: Any) -> str:
    return str(row(run).input["key"])


def begin(flow: type[Flow], worker: LocalWorker, key: str = "k") -> Any:
    """Start a run and carry it to its first wait."""
    run = flow.start({"key": key})
    worker.run()
    return run


# ------------------------------------------------------------------ each way to be woken

Bring = Callable[[type[Flow], LocalWorker, Clock], Any]
Wake = Callable[[Any, LocalWorker, Clock], None]


def _asleep(flow: type[Flow], worker: LocalWorker, clock: Clock) -> Any:
    run = begin(flow, worker)
    answer(run)
    worker.run()
    assert row(run).node == "nap"
    return run


def _failing(flow: type[Flow], worker: LocalWorker, clock: Clock) -> Any:
    factories.does["act"] = failing(1, Transient)
    run = _asleep(flow, worker, clock)
    _hour(run, worker, clock)
    worker.run()
    assert (row(run).node, row(run).error_code) == ("act", "TRANSIENT")
    return run


def _paused(flow: type[Flow], worker: LocalWorker, clock: Clock) -> Any:
    run = flow.start({"key": "k"})
    flows.pause(run)
    return run


def _hour(run: Any, worker: LocalWorker, clock: Clock) -> None:
    clock.move(minutes=61)
    worker.tick()


def _resume(run: Any, worker: LocalWorker, clock: Clock) -> None:
    flows.resume(run)


#: cause → (carry a run to where it can be woken so, wake it)
WAYS: Mapping[str, tuple[Bring, Wake]] = {
    "event": (lambda flow, worker, clock: begin(flow, worker), lambda run, worker, clock: answer(run)),
    "timer": (_asleep, _hour),
    "retry": (_failing, _hour),
    "resume": (_paused, _resume),
}


def asking_flow(declare: Callable[..., type[Flow]], on_release: Any) -> type[Flow]:
    """Asks people."""
    return declare(
        "t-asking",
        meta={"on_release": on_release},
        propose=flows.Decision(approving.propose, choices={"release": "ask"}, visits=Visits(4, then="over")),
        ask=flows.Approval(
            candidate="propose",
            role=approving.ROLE,
            expires=Deadline(hours=24, then="over"),
            approved="publish",
            changes="propose",
            denied="over",
        ),
        publish=Activity(approving.publish, gate=flows.Gate(approved_by="ask"), then="done"),
        done=End(COMPLETE),
        over=End(FAILED),
    )


def finish(run: Any, worker: LocalWorker, clock: Clock) -> Workflow:
    """Carry a run on until nothing moves it."""
    for _ in range(6):
        worker.run()
        if row(run).node == "ask" and row(run).status == "waiting":
            answer(run)
        _hour(run, worker, clock)
    worker.run()
    return row(run)
