"""What can be asked and done about the agent's effects afterwards: did it arrive, and how to take it back. Again is once.

Each gets the recorded operation and visits the site in a session of its own. What was sent is found by the reference that was sent with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flows import DidNotHappen, Happened
from flows.errors import StateConflict
from project.agents.browser import policy
from project.agents.browser.sessions import visit_once

if TYPE_CHECKING:
    from flows import Operation


def find_document(operation: Operation) -> Happened | DidNotHappen:
    """Whether the site has the document that was handed in under this operation's id."""
    number = _found(operation, "documents", operation.id)
    return Happened({"number": number, **operation.request}, external_id=number) if number else DidNotHappen()


def find_submission(operation: Operation) -> Happened | DidNotHappen:
    """Whether the site has the form that was sent under the reference."""
    reference = operation.request["reference"]
    number = _found(operation, "permits", reference)
    return Happened({"number": number, "reference": reference}, external_id=number) if number else DidNotHappen()


def remove_document(operation: Operation) -> dict[str, Any]:
    """Take back what was handed in."""
    return _press(operation, "documents", policy.REMOVE, "removed")


def withdraw(operation: Operation) -> dict[str, Any]:
    """Take back what was sent."""
    return _press(operation, "permits", policy.WITHDRAW, "withdrawn")


def _found(operation: Operation, kind: str, reference: str) -> str:
    with visit_once(operation) as site:
        numbers = policy.numbers_in(site.read(policy.by_reference(kind, reference)), kind)
    return numbers[0] if numbers else ""  # that there is one alone, `verify` looks up


def _press(operation: Operation, kind: str, form: str, wanted: str) -> dict[str, Any]:
    assert operation.of is not None
    number = operation.of.evidence["number"]
    with visit_once(operation) as site:
        page = site.read(f"/{kind}/{number}")
        if page.facts.get("State") != wanted:
            page = site.send(page.form(form), {})
        if page.facts.get("State") != wanted:
            raise StateConflict(f"{number} is {page.facts.get('State')!r}, and should be {wanted}")
    return {"number": number, "state": wanted}
