"""What a candidate may be, what the pages of the site mean, and what follows from what was read. Pure: functions of their arguments alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from flows.errors import CompetenceFailure, InvalidCandidate, PolicyDenied

if TYPE_CHECKING:
    from flows import State
    from project.agents.browser.pages import Document, Form

Json = dict[str, Any]

NEW_PERMIT, NEW_DOCUMENT = "/permits/new", "/documents/new"
PERMIT, DOCUMENT, LEAVE, WITHDRAW, REMOVE = "permit", "document", "leave", "withdraw", "remove"  # what the site calls its forms
#: Fields that code fills in, and no model.
PLAN, REFERENCE = "plan", "reference"
KINDS = frozenset({"text", "number", "date", "time", "email", "tel", "select", "textarea"})
LONGEST = 500
NUMBER = re.compile(r"/(permits|documents)/([A-Z]-\d+)")


def check_input(given: Mapping[str, Any]) -> None:
    """
    Raises:
        PolicyDenied: says what is wrong.
    """
    for name in ("site", "applicant"):
        if not isinstance(given.get(name), str) or not given[name]:
            raise PolicyDenied(f"{name} must be a text, not {given.get(name)!r}")
    facts = given.get("facts")
    if not isinstance(facts, Mapping) or not all(isinstance(one, str | int) for one in facts.values()):
        raise PolicyDenied("facts must be an object of texts and whole numbers: what may be told to the site")


# ---------------------------------------------------------------------- the candidate


def check_value(value: Any) -> None:
    """The shape of a recorded candidate: the version of a form and a text for each of its fields, or a reason to give up.

    Raises:
        InvalidCandidate: it is neither.
    """
    if not isinstance(value, Mapping):
        raise InvalidCandidate("a candidate's value is an object")
    if set(value) == {"reason"} and isinstance(value["reason"], str):
        return
    texts = value.get("values")
    if not isinstance(texts, Mapping) or not all(isinstance(one, str) for pair in texts.items() for one in pair):
        texts = None
    if not texts or set(value) != {"form", "values"} or not isinstance(value["form"], str):
        raise InvalidCandidate("a filled form is its version (form) and a text by the name of each field (values)")


def check_values(form: Form, values: Mapping[str, Any]) -> None:
    """Only what the form asks for, all that it needs, and nothing that is not the model's to say.

    Raises:
        InvalidCandidate: names the field. CompetenceFailure: the form asks for something that cannot be filled in here.
    """
    open_to = {one.name: one for one in form.asked if one.name not in (PLAN, REFERENCE)}
    for one in open_to.values():
        if one.kind not in KINDS:
            raise CompetenceFailure(f"{one.name!r} is a field of kind {one.kind}")
    if strange := sorted(values.keys() - open_to.keys()):
        raise InvalidCandidate(f"not open to the model: {', '.join(strange)}")
    for name, one in open_to.items():
        value = values.get(name, "")
        if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
            raise InvalidCandidate(f"{name} is a text of one line, of at most {LONGEST} characters")
        if one.required and not value:
            raise InvalidCandidate(f"{name} is needed")
        if one.options and value not in dict(one.options):
            raise InvalidCandidate(f"{value!r} is none of the choices of {name}")


def sheet(form: Form, values: Mapping[str, str]) -> list[Json]:
    """Each field with what will be sent, for people: what the page calls it stands beside it as what the page says."""
    found = []
    for one in form.asked:
        value = values.get(one.name, "")
        means = {"page_says_value": dict(one.options)[value]} if one.options else {}
        found.append({"field": one.name, "page_says": one.label, "value": value, **means})
    return found


# ---------------------------------------------------------------------- what the site's pages mean


def by_reference(kind: str, reference: str) -> str:
    """Where the site lists what it has under a reference of ours. `kind`: "permits" or "documents"."""
    return f"/{kind}?reference={quote(reference, safe='')}"


def number_of(page: Document, kind: str) -> str | None:
    """The site's own number of what the page is about; None: it is no page about one."""
    found = NUMBER.fullmatch(page.path)
    return found[2] if found and found[1] == kind and page.status == 200 else None


def numbers_in(page: Document, kind: str) -> list[str]:
    """The numbers that a list names."""
    found = [NUMBER.search(href) for href, _ in page.links]
    return [one[2] for one in found if one and one[1] == kind]


# ---------------------------------------------------------------------- what follows


def applicant(state: State) -> str:
    """Who is asked for the document, and for the confirmation: the person in whose name it is sent."""
    return str(state.input["applicant"])


def document_state(state: State) -> str:
    """Whether there is a document that was accepted: then a form that is filled in anew needs no other."""
    attached, checked = state.results.get("attach"), state.results.get("check")
    if not attached or not checked or checked["payload"].get("document") != attached["number"]:
        return "missing"
    return "accepted" if checked["value"] == "accepted" else "missing"


def document_number(state: State) -> str:
    return str(state.results["attach"]["number"])


def said_of_document(state: State) -> str:
    """What the event says; a word other than the declared choices is not guessed at, so a person looks."""
    assert state.event is not None  # `read=` is only called with an event
    return str(state.event["payload"].get("state"))


def why_upload(state: State) -> str:
    if state.results.get("attach"):
        return "The site did not accept the plan that was handed in. It needs another one."
    return "The site wants a plan of the place. It is checked there before the form can be sent."


def document_wanted(state: State) -> Json:
    file = state.results["upload"]["answer"]["document"]
    return {"name": file["name"], "sha256": file["sha256"]}


def submission_wanted(state: State) -> Json:
    """What is sent, as it is recorded before it is: by the reference it is found again."""
    assembled = state.results["assemble"]
    return {name: assembled[name] for name in ("form", "fields", "reference")}


def submitted_as(state: State) -> Json:
    return {"number": state.results["verify"]["number"], "reference": state.results["assemble"]["reference"]}
