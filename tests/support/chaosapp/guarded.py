"""An activity that calls three guarded tools in two turns, the provider of the tools, and the story of a run to its end."""

from __future__ import annotations

from typing import Any

from approvals.models import Request
from approvals.services.decide import decide
from approvals.tools import gather, requires_approval
from flows import COMPLETE, Activity, Effect, End, Flow, Retry, minutes
from flows.core.effects import DidNotHappen, Happened
from flows.core.protocol import TERMINAL
from flows.models import Workflow
from flows.testing import Clock, LocalWorker
from tests.support.chaosapp import journal
from tests.support.chaosapp.voyage import ROUNDS, NotToBeEnded, point

#: The role and the name of who answers (`stories.make_reviewer`).
ROLE = "chaos-reviewer"


def ask(operation: Any) -> Any:
    """What the provider's own journal says: a call is known there by what it asked for."""
    arguments = operation.request["arguments"]
    done = {line["operation"] for line in journal.read(arguments["folder"], journal.DONE)}
    return Happened({"receipt": arguments["what"]}) if f"/{arguments['what']}" in done else DidNotHappen()


@requires_approval(role=ROLE, name="chaos-buy", effect=Effect(reconcile=ask))
def buy(folder: str, what: str) -> dict[str, str]:
    """Every call of it does it again."""
    point("before")
    journal.write(folder, journal.CALLED, f"/{what}", "")
    journal.write(folder, journal.DONE, f"/{what}", "")
    point("after")
    return {"receipt": what}


def act(attempt: Any) -> list[str]:
    """Two calls side by side, then one that is made of what they returned."""
    folder = attempt.input["folder"]
    one, two = gather(lambda: buy(folder, "rope"), lambda: buy(folder, "sail"))
    three = buy(folder, f"{one['receipt']} and {two['receipt']}")
    return [one["receipt"], two["receipt"], three["receipt"]]


class Guarded(Flow):
    """One activity that calls tools."""

    class Meta:
        name = "chaos-guarded"

    act = Activity(act, retry=Retry(3, initial=minutes(1), max_lost=1000), then="done")
    done = End(COMPLETE, result=lambda state: state.results["act"])


def guarded(folder: str, key: str) -> None:
    """A run whose every question is allowed by the reviewer. Twice is once."""
    from tests.support.chaosapp.stories import taking_over

    with taking_over() as worker:
        run = Guarded.start({"folder": folder}, key=key)
        carry_on(worker, run.id)


def carry_on(worker: LocalWorker, workflow: Any) -> None:
    from django.contrib.auth import get_user_model

    reviewer = get_user_model().objects.get(username=ROLE)
    for _ in range(ROUNDS):
        worker.run()
        worker.tick()
        row = Workflow.objects.get(pk=workflow)
        if row.status in TERMINAL:
            return
        if row.outcome not in ("", "WAITING", "RECONCILIATION_REQUIRED"):
            raise NotToBeEnded(f"{row.outcome} {row.error_code} at {row.node}")
        open_ones = list(Request.objects.filter(workflow_id=workflow, status="pending").order_by("pk"))
        for request in open_ones:
            decided = decide(request, verdict="approve", digest=request.digest, by=reviewer)
            if decided.code not in ("accepted", "already"):
                raise NotToBeEnded(decided.sentence)
        if not open_ones:
            Clock("default").move(minutes=2)
    raise NotToBeEnded(f"{row.status} at {row.node}, owed {row.owed}, after {ROUNDS} rounds")
