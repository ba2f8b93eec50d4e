"""A flow that sleeps through everything. Which versions of it a process carries is its deployment's: CHAOS_DEPLOYED=2 has the second, too.

Runs that wake there go to the second; what a run of the first still owes on its way to an end, the first declares.
"""

from __future__ import annotations

import os
from typing import Any

from flows import COMPLETE, ESCALATE, MIGRATE, Activity, Budget, Candidate, Commits, Deadline, Decision, End, Flow, Wait
from tests.support.chaosapp import journal
from tests.support.chaosapp.activities import touch

DAY = Deadline(days=1, then=ESCALATE)


def choose(attempt: Any) -> Candidate:
    """One call of a model: on record, and in the journal."""
    journal.write(attempt.input["folder"], journal.CALLED, attempt.operation_id, attempt.id)
    attempt.record_model("scripted", prompt="p", output="o")
    return Candidate("go", {"release": attempt.release.name if attempt.release is not None else ""})


def give_back(operation: Any) -> None:
    """Ends what is held."""
    if journal.once(operation.input["folder"], operation.id):
        journal.write(operation.input["folder"], journal.DONE, operation.id, operation.id)


def seen(state: Any) -> dict[str, Any]:
    return {name: state.results[name]["value"]["release"] for name in ("plan", "revise", "finish")}


class Meta1:
    name = "chaos-sleeper"
    on_release = MIGRATE
    budget = Budget(model_calls=2)


def nodes(after: str) -> dict[str, Any]:
    """The nodes that both versions have; after the event comes `after`."""
    return {
        "plan": Decision(choose, choices={"go": "hold"}),
        "hold": Activity(touch, commits=Commits("window", release=give_back), then="sleep"),
        "sleep": Wait("chaos.wake", key=lambda state: state.key, deadline=DAY, then=after),
        "revise": Decision(choose, choices={"go": "finish"}),
        "finish": Decision(choose, choices={"go": "act"}),
        "act": Activity(touch, fulfils="window", then="done"),
        "done": End(COMPLETE, result=seen),
    }


def first() -> type[Flow]:
    """Version 1."""
    return type("Sleeper", (Flow,), {"Meta": type("Meta", (Meta1,), {}), **nodes("revise")})


def second() -> type[Flow]:
    """Version 2 has a security scan before anything is revised."""
    meta = type("Meta", (Meta1,), {"version": 2, "migrate_from": {1: {}}, "migrate": "at_wake"})
    return type("Sleeper", (Flow,), {"Meta": meta, **nodes("scan"), "scan": Activity(touch, then="revise")})


Sleeper = first()
if os.environ.get("CHAOS_DEPLOYED") == "2":
    second()
