"""The work of the research agent's nodes. Each function is one attempt, and each may be killed at any line and run again.

What makes that safe: rows of the question are only added, or moved on by the visit that knows more (`findings.py`); which claims are judged anew
is computed from those rows each time, and never remembered; and the one thing that is done outside, an order, has a reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flows import Candidate
from flows.errors import PolicyDenied, StateConflict, Transient
from project.agents.research import findings, graph, policy, reading
from project.agents.research.archive import DATASET, Archive, digest_of
from project.agents.research.model import ModelAnswer, ModelRequest, get_model

if TYPE_CHECKING:
    from flows import Attempt

Json = dict[str, Any]
#: How a claim stands whose judgement failed: on that basis nobody is asked again.
NOT_JUDGED: Json = {"verdict": "unknown", "confidence": 0, "cites": []}


def plan_question(attempt: Attempt) -> Candidate:
    """A candidate for the claims that the answer rests on, and for the sources that may settle them."""
    policy.check_input(attempt.input)
    catalogue = Archive(attempt.input["archive"]).catalogue()
    request, answer = _ask(attempt, reading.to_plan(attempt, catalogue))
    if answer.choice != "give_up":
        policy.check_plan(answer.value, [entry["name"] for entry in catalogue])
    return _candidate(request, answer)


def keep_claims(attempt: Attempt) -> Json:
    """The claims of the plan, as rows."""
    claims = attempt.results["plan"]["value"]["claims"]
    findings.plan(attempt.workflow_id, claims)
    return {"claims": len(claims)}


def vet_sources(attempt: Attempt) -> Json:
    """What there is to read that was not read yet, as the archive says now: an event only woke us."""
    seen = findings.looked_at(attempt.workflow_id)
    wanted = graph.wanted(findings.graph_of(findings.claims(attempt.workflow_id)))
    known, asked = [], []
    for entry in Archive(attempt.input["archive"]).catalogue():
        if entry["name"] in wanted and entry["version"] > seen.get(entry["name"], 0):
            one = {name: entry[name] for name in ("name", "version", "digest", "publisher")}
            trusted = entry["publisher"] in attempt.input.get("trusted", ())
            (known if trusted else asked).append({**one, "catalogue_says": entry["title"]})
    return {"look": attempt.visit, "known": known, "asked": asked}


def admit_sources(attempt: Attempt) -> Json:
    """What was approved: exactly these versions may be read."""
    if attempt.approved is None:
        raise PolicyDenied("nothing was approved")
    frozen = attempt.approved["value"]
    return {"look": frozen["look"], "sources": frozen["asked"]}


def refuse_sources(attempt: Attempt) -> Json:
    """These versions are not read, and nobody is asked about them again."""
    asked = attempt.results["vet"]["asked"]
    findings.refuse(attempt.workflow_id, asked)
    return {"refused": [one["name"] for one in asked]}


def read_source(attempt: Attempt) -> Json:
    """One version of one source, as it was vetted.

    Raises:
        StateConflict: the archive has another text under that version now.
    """
    entry = attempt.input["item"]
    text = Archive(entry["archive"]).read(entry["name"], entry["version"])
    if digest_of(text) != entry["digest"]:
        raise StateConflict(f"{entry['name']} is not what was vetted", was=entry["digest"], now=digest_of(text))
    findings.keep(entry["run"], entry, text)
    return {"name": entry["name"], "version": entry["version"]}


def find_affected(attempt: Attempt) -> Json:
    """The claims that can be judged now, and on what; and all that the new evidence may concern."""
    ready, affected = findings.to_judge(attempt.workflow_id)
    return {"ready": ready, "affected": affected}


def judge_claim(attempt: Attempt) -> Candidate:
    """A candidate for the verdict on one claim."""
    request, answer = _ask(attempt, reading.to_judge(attempt))
    policy.check_judgement(answer.value, attempt.input)
    return _candidate(request, answer)


def record_verdicts(attempt: Attempt) -> Json:
    """What the claims were found to be, on the basis that they were judged on."""
    counts = {"judged": 0, "failed": 0}
    for item in attempt.items("assess"):
        good = item.status == "succeeded"
        value = item.result if good else {**NOT_JUDGED, "gap": f"It was not judged ({item.code or item.status})."}
        findings.judged(attempt.workflow_id, item.input, value, item.id, attempt.visit)
        counts["judged" if good else "failed"] += 1
    return counts


def list_requests(attempt: Attempt) -> Json:
    """What is open: what was never read, what is to be ordered, which events are waited for, and where sources disagree."""
    run, archive = attempt.workflow_id, Archive(attempt.input["archive"])
    rows = findings.claims(run)
    evidence, looked = findings.newest(run), findings.looked_at(run)
    wanted = graph.wanted(findings.graph_of(rows))
    kinds = {entry["name"]: entry["kind"] for entry in archive.catalogue() if entry["name"] in wanted}
    missing = {name: by for name, by in sorted(wanted.items()) if name in kinds and name not in looked}
    findings.ask_for(run, missing, kinds, attempt.results.get("order"))
    running = _colleague(attempt)
    weighed = list((attempt.results.get("requests") or {}).get("weighed", ()))  # on a basis the other agent is asked once
    open_ones = [row for row in rows if row.verdict == "contested" and graph.OPINION + row.name not in evidence]
    contested = [] if running else [row for row in open_ones if row.basis not in weighed]
    return {
        "missing": list(missing),
        "order": findings.not_ordered(run),
        "documents": [archive.key(name) for name in missing if kinds[name] != DATASET],
        "datasets": [archive.key(name) for name, kind in sorted(kinds.items()) if kind == DATASET],
        "contested": [row.name for row in contested],
        "weighed": [*weighed, *(row.basis for row in contested)][-100:],
        "colleague": running,
    }


def place_order(attempt: Attempt) -> Json:
    """One order for all that is missing, under this operation's id."""
    if (told := attempt.heartbeat()) != "continue":
        raise Transient(f"stopped before the effect: {told}")
    slip = Archive(attempt.input["archive"]).order(attempt.operation_id, attempt.results["requests"]["order"])
    return {"reference": attempt.operation_id, "names": slip["names"]}


def weigh_sources(attempt: Attempt) -> Candidate:
    """The other agent: a candidate for an opinion on claims on which sources disagree."""
    request, answer = _ask(attempt, reading.to_weigh(attempt))
    policy.check_opinions(answer.value, attempt.input["claims"])
    return _candidate(request, answer)


def hear(attempt: Attempt) -> Json:
    """What the other agent said becomes evidence as any other: on a claim, under its digest, and of somebody else."""
    heard = list((attempt.results.get("hear") or {}).get("heard", ()))
    for item in attempt.items("colleague", "succeeded", "failed", "cancelled") if _colleague(attempt) else ():
        heard.append(str(item.id))
        for one in item.result["opinions"] if item.status == "succeeded" else ():
            said = {"version": attempt.visit, "digest": digest_of(one["text"]), "publisher": f"run {item.id}"}
            findings.keep(attempt.workflow_id, {"name": graph.OPINION + one["claim"], **said}, one["text"])
    return {"heard": heard}


def compose_answer(attempt: Attempt) -> Json:
    """The answer, put together by code: each claim with its verdict, what it stands on, and what nobody could verify."""
    rows = findings.claims(attempt.workflow_id)
    premises = {name for row in rows for name in row.premises}
    tops = [row for row in rows if row.name not in premises]
    lacking = attempt.results["requests"]["missing"]
    return {
        "question": attempt.input["question"],
        "verdicts": {row.name: row.verdict for row in tops},
        "confidence": min((row.confidence for row in tops), default=0),
        "claims": [
            {
                "claim": row.name,
                "verdict": row.verdict,
                "confidence": row.confidence,
                "gap": row.gap,
                "waits_for": [name for name in row.sources if name in lacking],
                "provenance": row.provenance,
                "judged_by": str(row.judged_by or ""),
            }
            for row in rows
        ],
    }


# ---------------------------------------------------------------------- what they share


def _ask(attempt: Attempt, request: ModelRequest) -> tuple[ModelRequest, ModelAnswer]:
    model = get_model()
    answer = model.complete(request)
    attempt.record_model(model.name, prompt_hash=request.digest, output_hash=answer.digest, usage=answer.usage)
    return request, answer


def _candidate(request: ModelRequest, answer: ModelAnswer) -> Candidate:
    evidence = [{"kind": "model", "request": request.digest, "answer": answer.digest}]
    return Candidate(answer.choice, dict(answer.value), evidence)


def _colleague(attempt: Attempt) -> str:
    """The run of the other agent that was not heard yet; "": there is none."""
    asked = attempt.results.get("colleague")
    heard = (attempt.results.get("hear") or {}).get("heard", ())
    return asked["id"] if asked and asked["id"] not in heard else ""
