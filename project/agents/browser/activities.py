"""The work of the browser agent's nodes. Each function is one attempt, and each may be killed at any line and run again.

What makes that safe: no page is trusted to be as it was, each visit reads it anew; what is sent is a function of recorded values alone; and each
thing that is sent carries a reference by which the site finds it again. Where nobody knows whether it arrived, `undoing.py` asks the site.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files.storage import storages

from flows import Candidate
from flows.errors import AmbiguousOutcome, CompetenceFailure, PolicyDenied, StateConflict, Transient, VerificationFailed
from project.agents.browser import policy, reading
from project.agents.browser.model import get_model
from project.agents.browser.policy import DOCUMENT, NEW_DOCUMENT, NEW_PERMIT, PERMIT, PLAN, REFERENCE
from project.agents.browser.sessions import Visit, remember, visit

if TYPE_CHECKING:
    from flows import Attempt
    from project.agents.browser.pages import Form


def open_site(attempt: Attempt) -> dict[str, Any]:
    """The site lets us in, and has the form."""
    policy.check_input(attempt.input)
    with visit(attempt) as site:
        form = site.read(NEW_PERMIT).form(PERMIT)
    remember(attempt, page=NEW_PERMIT, form=form.version)
    return {"site": attempt.input["site"], "form": form.version}


def fill_form(attempt: Attempt) -> Candidate:
    """A candidate for today's form, from what was said of the candidates before it."""
    with visit(attempt) as site:
        page = site.read(NEW_PERMIT)
    form, said = page.form(PERMIT), reading.remarks(attempt)
    model, request = get_model(), reading.request(attempt, page, form, said)
    answer = model.complete(request)
    attempt.record_model(model.name, prompt_hash=request.digest, output_hash=answer.digest, usage=answer.usage)
    evidence = [
        {"kind": "model", "name": model.name, "request": request.digest, "answer": answer.digest},
        *({"kind": "feedback", **item} for item in said),
    ]
    if answer.choice != "form":
        return Candidate(answer.choice, {"reason": answer.reason}, evidence)
    policy.check_values(form, answer.values)
    remember(attempt, page=NEW_PERMIT, form=form.version)
    return Candidate("form", {"form": form.version, "values": dict(answer.values)}, evidence)


def form_version(attempt: Attempt) -> str:
    """Probe: what the form asks for now."""
    with visit(attempt) as site:
        return site.read(NEW_PERMIT).form(PERMIT).version


def attach_document(attempt: Attempt) -> dict[str, Any]:
    """The person's document goes to the site, under this operation's id."""
    given = attempt.results["upload"]["answer"]["document"]
    with _given(given) as file, visit(attempt) as site:
        form = site.read(NEW_DOCUMENT).form(DOCUMENT)
        _still_wanted(attempt)
        page = site.send(form, {REFERENCE: attempt.operation_id}, {"file": file})
    number = policy.number_of(page, "documents")
    if number is None:
        raise AmbiguousOutcome(f"the site answered with {page.path} ({page.status})")
    return {"number": number, "name": given["name"], "sha256": given["sha256"]}


def assemble_form(attempt: Attempt) -> dict[str, Any]:
    """Exactly what would be sent, for the person who confirms it: looked up now, and not remembered; an event only woke us.

    Raises:
        StateConflict: the form asks for something else than when it was filled in. VerificationFailed: the document does not hold.
    """
    filled, document = attempt.results["fill"]["value"], attempt.results["attach"]
    with visit(attempt) as site:
        form = _same_form(site, filled["form"])
        said = site.read(f"/documents/{document['number']}").facts
    if said.get("State") != "accepted" or said.get("SHA-256") != document["sha256"]:
        raise VerificationFailed("the site does not say of this document that it was accepted")
    reference = attempt.operation_id
    values = {**filled["values"], PLAN: document["number"], REFERENCE: reference}
    return {
        "address": f"{attempt.input['site']}{NEW_PERMIT}",
        "form": form.version,
        "fields": policy.sheet(form, values),
        "document": document,
        "reference": reference,
    }


def submit_form(attempt: Attempt) -> dict[str, Any]:
    """Exactly the confirmed form is sent, once, and only while the site asks for that."""
    if attempt.approved is None:
        raise PolicyDenied("nothing was confirmed")
    confirmed = attempt.approved["value"]
    values = {one["field"]: one["value"] for one in confirmed["fields"]}
    with visit(attempt) as site:
        form = _same_form(site, confirmed["form"])
        _still_wanted(attempt)
        page = site.send(form, values)
    if number := policy.number_of(page, "permits"):
        return {"number": number, "reference": confirmed["reference"]}
    if page.status == 422 and any(one.id == PERMIT for one in page.forms):  # the site shows the form again, and says why
        remember(attempt, refused={"candidate": attempt.results["fill"]["digest"], "said": page.text[: reading.MAX_TEXT]})
        raise StateConflict("the site refuses the form")
    raise AmbiguousOutcome(f"the site answered with {page.path} ({page.status})")


def verify_submission(attempt: Attempt) -> dict[str, Any]:
    """The postcondition, looked up: the site has what was confirmed under its number, and has it once."""
    confirmed, number = attempt.results["assemble"], attempt.results["submit"]["number"]
    with visit(attempt) as site:
        found = policy.numbers_in(site.read(policy.by_reference("permits", confirmed["reference"])), "permits")
        said = site.read(f"/permits/{number}").facts
    if found != [number]:
        raise VerificationFailed(f"the site should have {number} under the reference, and has {found}")
    for one in confirmed["fields"]:
        if said.get(one["page_says"]) not in {one["value"], one.get("page_says_value")}:
            raise VerificationFailed(f"{number} says something else in {one['field']!r} than was confirmed")
    if said.get("State") != "received":
        raise VerificationFailed(f"{number} is not received")
    return {"number": number, "form": confirmed["form"]}


# ---------------------------------------------------------------------- what they share


def _same_form(site: Visit, version: str) -> Form:
    form = site.read(NEW_PERMIT).form(PERMIT)
    if form.version != version:
        raise StateConflict("the form asks for something else now", was=version, now=form.version)
    return form


@contextmanager
def _given(file: dict[str, Any]) -> Iterator[Path]:
    """What a person gave, as a file of our own naming: what they called it is data."""
    alias = getattr(settings, "OUTLAST", {}).get("UPLOAD_STORAGE", "default")
    with storages[alias].open(file["path"]) as stored:
        content = stored.read()
    if hashlib.sha256(content).hexdigest() != file["sha256"].removeprefix("sha256:"):
        raise CompetenceFailure("the stored document is not the one that was given")
    with tempfile.TemporaryDirectory(prefix="outlast-document-") as folder:
        path = Path(folder, "plan")
        path.write_bytes(content)
        yield path


def _still_wanted(attempt: Attempt) -> None:
    """Asked directly before an effect: a worker that lost its work, or whose work was cancelled, sends nothing."""
    if (answer := attempt.heartbeat()) != "continue":
        raise Transient(f"stopped before the effect: {answer}")
