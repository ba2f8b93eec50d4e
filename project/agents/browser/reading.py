"""What one decision is made on: the application's facts, the page as it is now, and what was said of the forms before this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows import Fact, Untrusted
from flows.errors import CompetenceFailure
from project.agents.browser import model, policy
from project.agents.browser.model import INSTRUCTIONS, ModelRequest

if TYPE_CHECKING:
    from flows import Attempt
    from project.agents.browser.pages import Document, Form

MAX_TOKENS, MAX_REMARKS, MAX_TEXT = 20_000, 8, 2_000


def remarks(attempt: Attempt) -> list[dict[str, str]]:
    """What was said of this workflow's forms so far, oldest first: by the person who is to confirm, and by the site that refused one.

    What was said of earlier ones stands in the evidence of the candidate before this one. A refusal counts where it is of that candidate.
    """
    before = attempt.results.get("fill")
    if before is None:
        return []
    items = [{"source": item["source"], "text": item["text"]} for item in before["evidence"] if item["kind"] == "feedback"]
    answer = attempt.results.get("confirm") or {}
    if answer.get("answer") == "changes":
        items.append({"source": model.REVIEWER, "text": (answer.get("comment") or "")[:MAX_TEXT]})
    refused = (attempt.checkpoint or {}).get("refused") or {}
    if refused.get("candidate") == before["digest"]:
        items.append({"source": model.SITE, "text": refused["said"][:MAX_TEXT]})
    return [item for place, item in enumerate(items) if item not in items[:place]][-MAX_REMARKS:]


def request(attempt: Attempt, page: Document, form: Form, said: list[dict[str, str]]) -> ModelRequest:
    """The context of one decision. All that the page says is fenced, its fields and labels included."""
    fields = [
        {
            "name": one.name,
            "label": one.label,
            "kind": one.kind,
            "required": one.required,
            "options": [list(pair) for pair in one.options],
        }
        for one in form.asked
        if one.name not in (policy.PLAN, policy.REFERENCE)
    ]
    extra: dict[str, Fact | Untrusted] = {
        "application": Fact(dict(attempt.input["facts"]), whole=True),
        "fields": Untrusted(fields, model.FIELDS, whole=True),
        "page": Untrusted(page.text, model.PAGE),
    }
    extra |= {f"remark {number}": Untrusted(one["text"], one["source"], whole=True) for number, one in enumerate(said, start=1)}
    context = attempt.context(max_tokens=MAX_TOKENS, extra=extra, nodes=(), without=["checkpoint", "input"])
    if {"application", "fields"} - {item.name for item in context.items("extra")}:
        raise CompetenceFailure("the form is too large for one decision")
    return ModelRequest(INSTRUCTIONS, context, ("form", "give_up"))
