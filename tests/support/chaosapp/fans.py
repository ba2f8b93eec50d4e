"""Runs with children: items that touch the world once each, a child that is waited for, and one that is not."""

from __future__ import annotations

from typing import Any

from flows import COMPLETE, ESCALATE, WAIT, Activity, Child, Deadline, End, Flow, Map, Retry, minutes
from tests.support.chaosapp.activities import touch

DAY = Deadline(days=1, then=ESCALATE)
PATIENT = Retry(max_lost=1000)


def item(attempt: Any) -> dict[str, Any]:
    """One effect for each item, idempotent by its operation id."""
    attempt.input = attempt.input["item"]
    return touch(attempt)


def items_of(state: Any) -> list[dict[str, Any]]:
    return [{"folder": state.input["folder"], "number": number} for number in range(state.input["count"])]


class Fanning(Flow):
    """One item after another at most two at once, then a child, then the end while another one may still run."""

    class Meta:
        name = "chaos-fanning"

    each = Map(items_of, do=item, concurrency=1, retry=PATIENT, deadline=DAY, then="kid")
    kid = Child("chaos-leaf", completed="loose", failed="done", deadline=DAY)
    loose = Child("chaos-leaf", wait=False, then="done", on_cancel=WAIT)
    done = End(COMPLETE, result=lambda state: dict(state.results["each"]))


class Leaf(Flow):
    """One step."""

    class Meta:
        name = "chaos-leaf"

    do = Activity(touch, retry=PATIENT, then="done")
    done = End(COMPLETE)


class Mapped(Flow):
    """Many items, each once."""

    class Meta:
        name = "chaos-mapped"

    each = Map(items_of, do=item, concurrency=100, retry=PATIENT, timeout=minutes(5), deadline=DAY, then="after")
    after = Activity(touch, retry=PATIENT, then="done")
    done = End(COMPLETE, result=lambda state: dict(state.results["each"]))


def fanning(folder: str, key: str) -> None:
    """To its end, with the children of it, from wherever it was left."""
    from flows.models import Workflow
    from tests.support.chaosapp.stories import ENDED, ROUNDS, NotToBeEnded, taking_over

    with taking_over() as worker:
        run = Fanning.start({"folder": folder, "count": 2}, key=key)
        for _ in range(ROUNDS):
            worker.run()
            worker.tick()
            left = Workflow.objects.filter(intent_id=run.intent_id).exclude(status__in=ENDED)
            if not left.exists():
                return
            if left.filter(outcome="HUMAN_REQUIRED").exists():
                raise NotToBeEnded(str(left.values_list("flow_name", "error_code")))
        raise NotToBeEnded(f"{left.count()} runs after {ROUNDS} rounds")
