"""A flow that asks for an order by a form, with a field of every kind; `approving.world` has the people for it."""

from __future__ import annotations

from typing import Any

from django.core.files.base import ContentFile
from django.db import transaction

from approvals.api import Answered, answer
from approvals.models import Request
from flows import COMPLETE, ESCALATE, FAILED, Activity, Ask, Deadline, End, Escalation, Field, Flow, State, hours
from tests.support.approving import ROLE, World

FORM = [
    Field("title", most=80, help="As it stands on the invoice."),
    Field("count", kind="integer", least=1, most=1000),
    Field("price", kind="decimal", least="0.01", most="99999.99"),
    Field("urgent", kind="boolean"),
    Field("size", kind="choice", choices={"s": "Small", "l": "Large"}),
    Field("wanted_by", kind="date", least="2026-01-01", required=False),
    Field("note", required=False, most=20_000),
    Field("contract", kind="file", required=False, most=2000),
]

VALUES: dict[str, Any] = {"title": "Bolts", "count": 12, "price": "4.50", "urgent": True, "size": "l"}


def ordered(attempt: Any) -> dict[str, Any]:
    """What the next step makes of the answer."""
    return {"ordered": attempt.results["ask"]["answer"]["title"]}


class OrderParts(Flow):
    """Order what somebody says is needed."""

    ask = Ask(
        FORM,
        why="The store has run out.",
        role=ROLE,
        deadline=Deadline(hours=24, then=ESCALATE),
        reminders=[hours(4)],
        escalation=[Escalation("managing editors", hours=8)],
        then="order",
    )
    order = Activity(ordered, then="done")
    done = End(COMPLETE, result=lambda state: {"asked": state.results["ask"], **state.results["order"]})


def about(state: State) -> list[Field]:
    return [Field("verdict", kind="choice", choices=state.input["values"], label=state.input.get("label", ""))]


class ChooseAWay(Flow):
    """Somebody other than the accountable user says which way to go."""

    ask = Ask(
        about,
        why=lambda state: f"About {state.input['values'][0]}.",
        role=ROLE,
        deadline=Deadline(hours=2, then="stopped"),
        route_by="verdict",
        choices={"left": "left", "right": "stopped"},
        self_answer=False,
    )
    left = End(COMPLETE)
    stopped = End(FAILED)


def worded(state: State) -> list[Field]:
    (text,) = state.input["values"]
    return [Field("x", kind="choice", choices={"a": text}, label=text, help=text)]


class AskInTheirWords(Flow):
    """Whatever is said in the form comes from outside."""

    ask = Ask(
        worded, why=lambda state: state.input["values"][0], role=ROLE, deadline=Deadline(hours=1, then=ESCALATE), then="done"
    )
    done = End(COMPLETE)


def fill(world: World, request: Request, by: Any = None, files: Any = None, digest: str = "", **values: Any) -> Answered:
    """Answer as Rita, rightly unless something else is said; a value of None is left out."""
    given = {name: value for name, value in {**VALUES, **values}.items() if value is not None}
    return answer(request, values=given, files=files, digest=digest or request.digest, by=by or world.rita)


def fill_and_roll_back(world: World, request: Request, **more: Any) -> None:
    """An answer inside a transaction of the caller, which fails."""
    with transaction.atomic():
        assert fill(world, request, **more)
        raise ZeroDivisionError


def file(content: bytes = b"%PDF-1.7 signed", name: str = "contract.pdf") -> ContentFile:  # type: ignore[type-arg]
    """A file as it is given."""
    return ContentFile(content, name=name)
