"""Flows, states and facts for tests of the pure core, each with sound values for what the test does not name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from flows.core import canonical
from flows.core.decide import Decided, decide
from flows.core.definition import Definition, Flow
from flows.core.errors import Failure, Route
from flows.core.nodes import COMPLETE, FAILED, Activity, Approval, Decision, End
from flows.core.policies import ESCALATE, Deadline
from flows.core.requirements import Gate
from flows.core.state import ActivityState, ApprovalFact, Facts, State, Trigger, WaitState

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def work(attempt: Any) -> None:
    """An author's function that is never called: decisions look at declarations only."""


def declare(meta: Mapping[str, Any] | None = None, name: str = "Sample", **nodes: Any) -> Definition:
    """The definition of a flow with these nodes; with none given, one activity and an End."""
    body = nodes or {"first": Activity(work, then="done"), "done": End(COMPLETE)}
    cls = type(name, (Flow,), {**({"Meta": type("Meta", (), dict(meta))} if meta else {}), **body})
    return cls.definition


def state(node: str = "first", **values: Any) -> State:
    """A state at `node`; mappings are frozen as the engine gets them."""
    frozen = {key: MappingProxyType(value) if isinstance(value, dict) else value for key, value in values.items()}
    base = State("wf", "sample", 1, None, node, MappingProxyType({}), NOW)
    return replace(base, **frozen)


def activity(node: str = "first", step: str = "", **values: Any) -> ActivityState:
    return replace(ActivityState(seq=1, node=node, step=step, visit=1, number=1, fence=1), **values)


def wait(node: str, kind: str, evidence: Mapping[str, Any] | None = None, *, due: bool = False) -> WaitState:
    return WaitState(7, node, kind, 1, evidence, due)


def facts(definition: Definition, **values: Any) -> Facts:
    """Facts under which nothing is refused."""
    return replace(Facts(intent_version=1, intent_status="active", fingerprint=definition.fingerprint), **values)


def approval(digest: str, status: str = "approved", **values: Any) -> ApprovalFact:
    return replace(ApprovalFact("r1", status, digest, 1), **values)


def failure(code: str = "TRANSIENT", route: Route = Route.RETRY, *classes: str, retry_after: float | None = None) -> Failure:
    return Failure(code, route, classes, retry_after)


def ask(definition: Definition, at: State, trigger: Trigger, **values: Any) -> Decided:
    """What the engine answers."""
    return decide(definition, at, trigger, facts(definition, **values))


def artifact(value: Any = 1) -> dict[str, Any]:
    """What a Decision that chose "patch" has recorded."""
    body = {"choice": "patch", "value": value}
    return {**body, "evidence": None, "digest": canonical.digest(body), "revision": 1}


def approved_flow(**options: Any) -> Definition:
    """A candidate, people who are asked about it, and an activity that may run only if they approve; `options` are the activity's."""
    due = Deadline(hours=1, then=ESCALATE)
    return declare(
        propose=Decision(work, choices={"patch": "ask"}),
        ask=Approval(candidate="propose", role="r", approved="merge", denied="no", changes="propose", expires=due),
        merge=Activity(work, gate=Gate(approved_by="ask"), then="done", **options),
        done=End(COMPLETE),
        no=End(FAILED),
    )
