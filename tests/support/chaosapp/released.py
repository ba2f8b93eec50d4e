"""Three runs sleep while another release becomes current: one moves, one begins again, one is moved by a person."""

from __future__ import annotations

from typing import Any

import flows
from flows import COMPLETE, ESCALATE, HUMAN, MIGRATE, Activity, Deadline, End, Flow, Visits, Wait, releases, restart_from
from flows.models import Workflow
from tests.support.chaosapp import journal
from tests.support.chaosapp.activities import touch


def under(attempt: Any) -> dict[str, Any]:
    """The journal says under which release it was called."""
    journal.write(attempt.input["folder"], "under", attempt.operation_id, attempt.release.name)
    return touch(attempt)


def key_of(state: Any) -> str:
    return str(state.key)


def sleeper(name: str, on_release: Any) -> type[Flow]:
    """Plan ─► wait ─► act ─► done."""
    return type(
        name,
        (Flow,),
        {
            "Meta": type("Meta", (), {"name": f"chaos-{name.lower()}", "on_release": on_release}),
            "plan": Activity(under, visits=Visits(3, then="done"), then="ask"),
            "ask": Wait("chaos.go", key=key_of, deadline=Deadline(days=1, then=ESCALATE), then="act"),
            "act": Activity(under, then="done"),
            "done": End(COMPLETE),
        },
    )


Migrating, Restarting, Asking = (
    sleeper("Migrating", MIGRATE),
    sleeper("Restarting", restart_from("plan")),
    sleeper("Asking", HUMAN),
)
SLEEPERS = (Migrating, Restarting, Asking)


def released(folder: str, key: str) -> None:
    """Told again from its beginning after any crash: what was done is not done again."""
    from tests.support.chaosapp.stories import ENDED, NotToBeEnded, taking_over

    old, new = f"{key}-old", f"{key}-new"
    releases.register(old, prompts={"plan": f"{key} old"})
    releases.register(new, prompts={"plan": f"{key} new"}, compatible_with=[old])
    with taking_over() as worker:
        runs = []
        for flow in SLEEPERS:
            if not Workflow.objects.filter(flow_name=flow.definition.name, key=key).exists():
                releases.make_current(old, flow=flow, by=None, reason="a story")
            runs.append(flow.start({"folder": folder}, key=key).id)
        worker.run()
        for flow in SLEEPERS:
            releases.make_current(new, flow=flow, by=None, reason="a story")
        for number in range(4):
            for run in Workflow.objects.filter(pk__in=runs, status="waiting", node="ask").order_by("flow_name"):
                if run.outcome == "WAITING":
                    flows.signal(f"{key}/{run.flow_name}/{number}", "chaos.go", key=key, payload={})
                else:
                    releases.move(run.pk, to=new, by=None, reason="a story")
            worker.run()
            worker.tick()
            if {row.status for row in Workflow.objects.filter(pk__in=runs)} <= ENDED:
                return
    raise NotToBeEnded([(row.flow_name, row.status, row.node, row.outcome) for row in Workflow.objects.filter(pk__in=runs)])
