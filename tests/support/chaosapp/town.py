"""The browser agent's story: a person gives the plan, an official accepts it, the session expires, the form changes, and a person confirms."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.files.base import ContentFile
from django.test import override_settings

import flows
from flows import Activity
from flows.models import Wait, Workflow
from project.agents.browser.plain import PlainPage
from project.agents.browser.process import ask, events

PLAN = b"%PDF from above"
FACTS = {"name": "Ada", "event": "Fair", "day": "2027-06-05", "place": "park", "guests": 12, "music": "no"}


def town(folder: str, key: str) -> None:
    """One run, to its end, at the site whose address lies in the folder."""
    from project.agents.browser.flows import FilePermit
    from tests.support.chaosapp.stories import ROLE, carry_on, taking_over

    for node in FilePermit.definition.nodes.values():
        if isinstance(node, Activity):  # killed more often under one activity than any policy would bear
            object.__setattr__(node, "retry", replace(node.retry, max_lost=1000))
    site = Path(folder, "address").read_text()
    if (met := Path(folder, "requests")).is_dir():
        die_at_requests(met)
    with taking_over() as worker, override_settings(MEDIA_ROOT=folder, BROWSER_AGENT_DRIVER="http"):
        run = FilePermit.start({"site": site, "applicant": ROLE, "facts": FACTS}, key=key)
        worker.run()
        carry_on(worker, run.id, key)


def die_at_requests(met: Path) -> None:
    """SIGKILL before and after each kind of request to the site, the first time that any process of the story comes to it."""
    real = PlainPage._ask

    def _ask(self: PlainPage, method: str, url: str, *more: Any) -> Any:
        die(met / f"before {method} {urlsplit(url).path.replace('/', ' ')}")
        answer = real(self, method, url, *more)
        die(met / f"after {method} {urlsplit(url).path.replace('/', ' ')}")
        return answer

    PlainPage._ask = _ask  # type: ignore[method-assign]


def die(mark: Path) -> None:
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def end_wait(wait: Wait) -> None:
    """What the town does about a wait. Twice is once."""
    site = Workflow.objects.get(pk=wait.workflow_id).input["site"]
    if wait.kind == "ask":
        ask(f"{site}/control", {"expire": True})
        upload(wait)
        return
    if not any(event["key"] == wait.key for event in events(site, 0)):
        ask(f"{site}/control", {"check": [wait.key, "accepted"]})
    ask(f"{site}/control", {"layout": 2, "expire": True})  # the form is another one when it wakes
    for event in events(site, 0) * 2:
        flows.signal(event["id"], event["type"], key=event["key"], payload=event["payload"])


def upload(wait: Wait) -> None:
    from django.contrib.auth import get_user_model

    from approvals.api import answer
    from approvals.models import Request
    from tests.support.chaosapp.stories import ROLE

    request: Any = Request.objects.get(wait_id=wait.pk)
    by = get_user_model().objects.get(username=ROLE)
    told = answer(request, values={}, files={"document": ContentFile(PLAN, name="plan.pdf")}, digest=request.digest, by=by)
    assert told.code in ("accepted", "already"), told
