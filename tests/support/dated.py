"""One flow with a deadline of any kind and policy, and how a test brings it to the moment at which that passes.

hold (a window) ──► look (a decision, the baseline) ──► [step] ──► ask (waits) ──► extra (optional) ──► act (wants `main` fresh) ──► done
                                                                                                        other ──► done
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flows import (
    COMPLETE,
    ESCALATE,
    Activity,
    Approval,
    Candidate,
    Commits,
    Deadline,
    Decision,
    End,
    Flow,
    Fresh,
    Gate,
    Servicing,
    Wait,
    hours,
)
from flows.models import Commitment, Event, Notice, Timer
from flows.testing import Clock, LocalWorker
from tests import factories

Declare = Callable[..., type[Flow]]

#: What the probe sees, and what was given back.
seen: dict[str, str] = {}
released: list[str] = []

KINDS = ("wait", "approval", "workflow", "SLA", "commitment", "freshness")
#: The words of the table: what a deadline says, as arguments of `Deadline`.
POLICIES: dict[str, dict[str, Any]] = {
    "node": {"then": "other"},
    "escalate": {"then": ESCALATE, "escalate_to": "leads"},
    **{
        word: {"then": getattr(__import__("flows"), word.upper())}
        for word in ("human", "cancel", "fail", "release", "degrade", "breach")
    },
    "release:": {"then": __import__("flows").RELEASE, "to": "other"},
    "degrade:": {"then": __import__("flows").DEGRADE, "to": "other"},
}
FAR = Deadline(days=30, then=ESCALATE)


def forget() -> None:
    seen.clear()
    released.clear()
    seen["main"] = "1"
    factories.does["look"] = lambda attempt: Candidate("go", {"n": attempt.visit})


def probe(attempt: Any) -> str:
    return seen["main"]


def release(operation: Any) -> Any:
    released.append(operation.id)
    return {}


def flow(declare: Declare, kind: str, policy: str, *, steps: bool = False, optional: bool = True) -> type[Flow]:
    """A flow whose deadline of that kind passes two hours after its start."""
    mine = Deadline(hours=2, **POLICIES[policy])
    meta: dict[str, Any] = {"workflow": {"deadline": mine}, "SLA": {"sla": mine}}.get(kind, {"deadline": FAR})
    fresh = Fresh(probe, within=hours(2), **POLICIES[policy]) if kind == "freshness" else Fresh(probe)
    window = Commits("window", release=Servicing(release, idempotent=True), deadline=mine if kind == "commitment" else None)
    if kind == "approval":
        ask: Any = Approval(candidate="look", role="leads", expires=mine, approved="extra", denied="done")
    else:
        ask = Wait("t.dated", key="k", then="extra", deadline=mine if kind == "wait" else FAR)
    return declare(
        "t-deadline",
        meta=meta,
        hold=Activity(factories.work, commits=window, then="look"),
        look=Decision(factories.work, choices={"go": "step" if steps else "ask"}),
        **({"step": Activity(factories.work, timeout=hours(9), then="ask")} if steps else {}),
        ask=ask,
        extra=Activity(factories.work, optional=optional, then="act"),
        act=Activity(factories.work, gate=Gate(fresh={"main": fresh}), then="done"),
        **({"other": Activity(factories.work, then="done")} if policy in ("node", "release:", "degrade:") else {}),
        done=End(COMPLETE),
    )


def pass_time(worker: LocalWorker, clock: Clock, **span: float) -> int:
    """Let time pass, and have what is due looked at and worked on."""
    clock.move(**span)
    worker.tick()
    return worker.run()


def events() -> list[dict[str, Any]]:
    """The events of deadlines, in order."""
    return list(Event.objects.filter(type="deadline.expired").order_by("id").values_list("payload", flat=True))


def told() -> list[tuple[str, str]]:
    """(user, code) of the notices."""
    return sorted(Notice.objects.values_list("user__username", "code"))


def timer(kind: str, name: str = "") -> str:
    """The status of the newest timer of that kind."""
    return Timer.objects.filter(kind=kind, name=name).order_by("-pk").values_list("status", flat=True)[0]


def window() -> str:
    return Commitment.objects.values_list("status", flat=True).get(name="window")
