"""Two flows in two versions each, and a run of each that goes from the first to the second: by a person, and by the worker that takes it up."""

from __future__ import annotations

from typing import Any

import flows as outlast
from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Approval,
    Deadline,
    Decision,
    End,
    Flow,
    Gate,
    Migrated,
    State,
    Wait,
    registry,
)
from flows.core import definition as declared
from flows.models import Wait as WaitRow
from flows.models import Workflow
from tests.support.chaosapp.activities import choose, touch

DAY = Deadline(days=1, then=ESCALATE)


def key_of(state: Any) -> str:
    return str(state.key)


class Moved(Flow):
    """Asks, acts, hears."""

    class Meta:
        name = "chaos-moved"
        deadline = Deadline(days=30, then=ESCALATE)

    first = Activity(touch, then="choice")
    choice = Decision(choose, choices={"go": "ask", "stop": "refused"})
    ask = Approval(candidate="choice", role="chaos-reviewer", expires=DAY, approved="act", denied="refused")
    act = Activity(touch, gate=Gate(approved_by="ask"), then="done")
    done = End(COMPLETE)
    refused = End(FAILED)


def from_first(state: State) -> Migrated:
    return Migrated(state.node, results={"scan": {"of": state.results["choice"]["choice"]}}, note="scanned by hand")


class MovedOn(Flow):
    """The same with a scan, and a question that ends otherwise if nobody answers: it is asked anew."""

    class Meta:
        name = "chaos-moved"
        version = 2
        deadline = Deadline(days=30, then=ESCALATE)
        migrate_from = {1: from_first}

    first = Activity(touch, then="choice")
    choice = Decision(choose, choices={"go": "scan", "stop": "refused"})
    scan = Activity(touch, then="ask")
    ask = Approval(
        candidate="choice",
        role="chaos-reviewer",
        expires=Deadline(days=1, then="refused"),
        approved="act",
        denied="refused",
    )
    act = Activity(touch, gate=Gate(approved_by="ask"), then="last")
    last = Activity(touch, then="done")
    done = End(COMPLETE, result=lambda state: state.results["scan"])
    refused = End(FAILED)


class Woken(Flow):
    """Hears, then works."""

    class Meta:
        name = "chaos-woken"

    first = Activity(touch, then="hear")
    hear = Wait("chaos.hear", key=key_of, deadline=DAY, then="last")
    last = Activity(touch, then="done")
    done = End(COMPLETE)


class WokenLater(Flow):
    """The same with a scan in between."""

    class Meta:
        name = "chaos-woken"
        version = 2
        migrate_from = {1: {}}

    first = Activity(touch, then="hear")
    hear = Wait("chaos.hear", key=key_of, deadline=DAY, then="scan")
    scan = Activity(touch, then="last")
    last = Activity(touch, then="done")
    done = End(COMPLETE)


def move(worker: Any, folder: str, key: str) -> Any:
    """Started under the first version, and taken to the second by a person while reviewers are asked; the run's id."""
    run = Moved.start({"folder": folder}, key=key, by=owner())
    if Workflow.objects.get(pk=run.id).flow_version == 1:
        worker.run()
        outlast.migrate(run.id, by=owner(), reason="a scan is needed")
    return run.id


def wake(worker: Any, folder: str, key: str) -> Any:
    """Asleep under the first version while that is taken out of the code, then woken; the run's id."""
    run = Woken.start({"folder": folder}, key=key)
    if not WaitRow.objects.filter(workflow_id=run.id).exists():
        worker.run()
    outlast.signal(f"{key}/hear", "chaos.hear", key=key, payload={"n": 1})
    declared.DECLARED[:] = [cls for cls in declared.DECLARED if cls is not Woken]
    registry._lookup.cache_clear()
    known = sorted(registry.known())
    worker.flows, worker.versions = [name for name, _ in known], [version for _, version in known]
    return run.id


def owner() -> Any:
    """Who is accountable, and told of what happens."""
    from django.contrib.auth import get_user_model

    return get_user_model().objects.get_or_create(username="chaos-owner")[0]
