"""The research agent's story: a source needs a person's word, a document and a release are to come, and two sources disagree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import flows
from flows import Activity, registry
from flows.models import Wait, Workflow
from project.agents.research.archive import DATASET, Archive


def archive(folder: str) -> Archive:
    """What there is at the beginning; made whole before the first run of the story."""
    made = Archive(Path(folder, "archive"))
    if not made.folder.exists():
        made.announce("load-test", publisher="city", about=["bridge/strength"])
        made.announce("second-test", publisher="city", about=["bridge/strength"])
        made.announce("blog", publisher="somebody", about=["noise"])
        made.announce("survey", publisher="city", about=["bridge/deck"], kind=DATASET)
        for name, text in {"load-test": "holds 70", "second-test": "fails 20"}.items():
            made.publish(name, f"bridge/strength: {text}")
        made.publish("blog", "noise: holds 40")
    return made


def research(folder: str, key: str) -> None:
    """One question, to its end, with the runs that it has started."""
    from project.agents.research.flows import AssessClaim, Research, SecondOpinion
    from tests.support.chaosapp.stories import ENDED, ROUNDS, NotToBeEnded, taking_over

    for flow in (Research, AssessClaim, SecondOpinion, registry.flow("research.gather")):
        patient(flow.definition.nodes)
    with taking_over() as worker:
        given = {"archive": str(archive(folder).folder), "question": "May they use it?", "trusted": ["city"]}
        run = Research.start(given, key=key)
        for _ in range(ROUNDS):
            worker.run(["agents", "cleanup"])
            worker.tick()
            left = Workflow.objects.filter(intent_id=run.intent_id).exclude(status__in=ENDED)
            if not left.exists():
                return
            if stopped := list(left.filter(outcome="HUMAN_REQUIRED").values_list("flow_name", "node", "error_code")):
                raise NotToBeEnded(str(stopped))
            for wait in Wait.objects.filter(workflow_id__in=left.values("pk"), status="open"):
                end_wait(wait, folder)
        raise NotToBeEnded(str(list(left.values_list("flow_name", "status", "node"))))


def patient(nodes: Any) -> None:
    """Killed more often under one activity than any policy would bear."""
    for node in nodes.values():
        if isinstance(node, Activity):
            object.__setattr__(node, "retry", replace(node.retry, max_lost=1000))


def end_wait(wait: Wait, folder: str) -> None:
    """What the world does about a wait. Twice is once."""
    from tests.support.chaosapp import stories

    if wait.kind == "children":
        return
    if wait.kind == "event":
        made = archive(folder)
        if not made.newest("survey"):
            made.publish("survey", "bridge/deck: holds 65")
        for event in made.events() * 2:
            flows.signal(event["id"], event["type"], key=event["key"], payload=event["payload"])
    else:
        stories.end_wait(wait, "")
