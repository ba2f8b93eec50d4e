"""A flow that asks for a file, and the story of a run in which somebody gives it."""

from __future__ import annotations

from typing import Any

from django.core.files.base import ContentFile
from django.test import override_settings

from flows import COMPLETE, ESCALATE, Activity, Ask, Deadline, End, Field, Flow
from flows.models import Wait
from tests.support.chaosapp.activities import touch

CONTENT = b"signed and sealed"
FORM = [Field("name"), Field("contract", kind="file")]


class Asked(Flow):
    """Asks, and goes on with what it is given."""

    class Meta:
        name = "chaos-asked"

    first = Activity(touch, then="ask")
    ask = Ask(FORM, role="chaos-reviewer", deadline=Deadline(days=1, then=ESCALATE), then="last")
    last = Activity(touch, then="done")
    done = End(COMPLETE, result=lambda state: state.results["ask"]["answer"])


def asked(folder: str, key: str) -> None:
    """One run, to its end; answered again by whoever comes after a crash."""
    from tests.support.chaosapp.stories import carry_on, taking_over

    with taking_over() as worker, override_settings(MEDIA_ROOT=folder):
        run = Asked.start({"folder": folder}, key=key)
        worker.run()
        for wait in Wait.objects.filter(workflow_id=run.id, kind="ask"):
            fill(wait)
        carry_on(worker, run.id, key)


def fill(wait: Wait) -> None:
    """Twice is once."""
    from django.contrib.auth import get_user_model

    from approvals.api import answer
    from approvals.models import Request

    request: Any = Request.objects.get(wait_id=wait.pk)
    by = get_user_model().objects.get(username="chaos-reviewer")
    given = {"contract": ContentFile(CONTENT, name="contract.pdf")}
    told = answer(request, values={"name": "Rita"}, files=given, digest=request.digest, by=by)
    assert told.code in ("accepted", "already"), told
