"""Flows with children, and short ways to bring them where a test wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flows import COMPLETE, ESCALATE, FAILED, Activity, Deadline, End, Flow, Map, Retry, Wait
from flows.models import Branch, Fan, Workflow
from flows.testing import LocalWorker
from tests import factories
from tests.factories import key_of

DAY = Deadline(days=1, then=ESCALATE)
ONCE = Retry(max_attempts=1)

#: item → what its attempt does; anything else answers with the item.
acts: dict[Any, Callable[[Any], Any]] = {}
factories.said.append(acts)


def per_item(attempt: Any) -> Any:
    """The function of every item."""
    item = attempt.input["item"]
    action = acts.get(item if not isinstance(item, dict) else item.get("name"))
    return action(attempt) if action else {"item": item}


def failing(attempt: Any) -> Any:
    raise ValueError("no")


def items_of(state: Any) -> Any:
    return state.input.get("items", [])


class Leaf(Flow):
    """One step, and it has ended."""

    class Meta:
        name = "t-leaf"

    do = Activity(factories.work, retry=ONCE, on={Exception: "bad"}, then="done")
    done = End(COMPLETE, result=lambda state: {"leaf": state.input.get("name", "")})
    bad = End(FAILED)


class Slow(Flow):
    """Waits for an event before it ends."""

    class Meta:
        name = "t-slow"

    ask = Wait("t.slow", key=key_of, deadline=DAY, then="done")
    done = End(COMPLETE, result=lambda state: {"slow": state.input.get("key")})


def mapping(declare: Any, name: str = "t-map", **options: Any) -> type[Flow]:
    """A flow that maps over its input's items."""
    node = Map(items_of, **{"do": per_item, "retry": ONCE, "then": "after", "deadline": DAY, **options})
    flow: type[Flow] = declare(
        name, map=node, after=Activity(factories.work, then="done"), lost=End(FAILED),
        done=End(COMPLETE, result=lambda state: dict(state.results)),
    )  # fmt: skip
    return flow


def over_slow(declare: Any, name: str = "t-over-slow", **options: Any) -> type[Flow]:
    """The same where each item waits for its event."""
    return _over(declare, name, **options)


def _over(declare: Any, name: str, **options: Any) -> type[Flow]:
    node = Map(items_of, **{"child": Slow, "then": "after", "deadline": DAY, **options})
    flow: type[Flow] = declare(name, map=node, after=Activity(factories.work, then="done"), lost=End(FAILED), done=End(COMPLETE))
    return flow


def keys(*names: str) -> dict[str, Any]:
    """The input of a run over slow items with these keys."""
    return {"items": [{"key": name} for name in names]}


def fan(run: Any, node: str = "") -> Fan:
    """The newest fan of a run."""
    found = Fan.objects.filter(workflow_id=run.id)
    newest = (found.filter(node=node) if node else found).order_by("-pk").first()
    assert newest is not None
    return newest


def counters(run: Any) -> dict[str, int]:
    """Its counters, without what is none."""
    found = fan(run)
    names = ("running", "succeeded", "failed", "cancelled", "skipped")
    return {name: getattr(found, name) for name in names if getattr(found, name)}


def children(run: Any) -> list[Workflow]:
    """The runs that it has started, in the order of their branches."""
    ids = list(Branch.objects.filter(parent_id=run.id).order_by("fan_id", "number").values_list("workflow_id", flat=True))
    found = Workflow.objects.in_bulk(ids)
    return [found[one] for one in ids if one in found]


def agree() -> list[str]:
    """Where counters are not what the rows say."""
    wrong = []
    for one in Fan.objects.all():
        rows = list(Branch.objects.filter(fan_id=one.pk).values_list("status", flat=True))
        for name in ("running", "succeeded", "failed", "cancelled", "skipped"):
            if rows.count(name) != getattr(one, name):
                wrong.append(f"fan {one.pk}: {getattr(one, name)} {name}, and {rows.count(name)} rows")
    return wrong


def settle(worker: LocalWorker, rounds: int = 20) -> None:
    """Ticks and turns until neither finds anything."""
    for _ in range(rounds):
        worker.tick()
        if not worker.run():
            return
