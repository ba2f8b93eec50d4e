"""What a candidate may be, and what follows from what is recorded. Pure: functions of their arguments alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flows.errors import InvalidCandidate, PolicyDenied
from project.agents.research import graph

if TYPE_CHECKING:
    from flows import State

Json = dict[str, Any]

CLAIM = re.compile(r"[a-z0-9-]{1,40}(/[a-z0-9-]{1,40}){0,3}")
VERDICTS = ("unknown", "supported", "contradicted", "contested")
#: Only these say something; of the others there is no confidence, but a gap.
SETTLED = frozenset({"supported", "contradicted"})
MAX_CLAIMS, MAX_SOURCES, MAX_TEXT = 20, 30, 500


def check_input(given: Mapping[str, Any]) -> None:
    """
    Raises:
        PolicyDenied: says what is wrong.
    """
    for name in ("archive", "question"):
        if not isinstance(given.get(name), str) or not given[name]:
            raise PolicyDenied(f"{name} must be a text, not {given.get(name)!r}")
    trusted = given.get("trusted", [])
    if not isinstance(trusted, list | tuple) or not all(isinstance(one, str) for one in trusted):
        raise PolicyDenied("trusted must be a list of publishers whose sources may be read without asking anybody")


# ---------------------------------------------------------------------- candidates


def check_plan_value(value: Any) -> None:
    """The shape of a plan: claims with statements, sources and premises, none of which rests on itself; or a reason to give up.

    Raises:
        InvalidCandidate: names what is wrong.
    """
    if isinstance(value, Mapping) and set(value) == {"reason"} and isinstance(value["reason"], str):
        return
    claims = value.get("claims") if isinstance(value, Mapping) and set(value) == {"claims"} else None
    if not isinstance(claims, list) or not 1 <= len(claims) <= MAX_CLAIMS:
        raise InvalidCandidate(f"a plan has one to {MAX_CLAIMS} claims")
    for one in claims:
        if not isinstance(one, Mapping) or set(one) != {"name", "statement", "sources", "premises"}:
            raise InvalidCandidate("a claim has name, statement, sources and premises")
        if not isinstance(one["name"], str) or not CLAIM.fullmatch(one["name"]):
            raise InvalidCandidate(f"{one['name']!r:.80} is no name of a claim")
        _check_text(one["statement"], f"the statement of {one['name']}")
        if not one["statement"] or not (_are_texts(one["sources"]) and _are_texts(one["premises"])):
            raise InvalidCandidate(f"{one['name']} needs a statement, and names of sources and premises")
    planned = graph.graph_of(claims)
    if len(planned) < len(claims):
        raise InvalidCandidate("two claims have one name")
    for node in planned.values():
        if strange := sorted(set(node.premises) - planned.keys()):
            raise InvalidCandidate(f"{node.name} rests on what is no claim: {', '.join(strange)}")
    if around := graph.circle(planned):
        raise InvalidCandidate(f"claims rest on themselves: {', '.join(around)}")
    if len(graph.wanted(planned)) > MAX_SOURCES:
        raise InvalidCandidate(f"a plan wants at most {MAX_SOURCES} sources")


def check_plan(value: Mapping[str, Any], catalogue: Sequence[str]) -> None:
    """A plan wants only what the archive knows.

    Raises:
        InvalidCandidate: names what it does not.
    """
    check_plan_value(value)
    if "claims" not in value:
        raise InvalidCandidate("a plan has claims; a reason is for giving up")
    if strange := sorted(graph.wanted(graph.graph_of(value["claims"])).keys() - set(catalogue)):
        raise InvalidCandidate(f"the archive knows no {', '.join(strange)}")


def check_judgement_value(value: Any) -> None:
    """The shape of a judgement. What is not settled has a gap, and no confidence.

    Raises:
        InvalidCandidate: names what is wrong.
    """
    if not isinstance(value, Mapping) or set(value) != {"verdict", "confidence", "gap", "cites"}:
        raise InvalidCandidate("a judgement has verdict, confidence, gap and cites")
    if value["verdict"] not in VERDICTS:
        raise InvalidCandidate(f"{value['verdict']!r:.80} is no verdict")
    sure = value["confidence"]
    if type(sure) is not int or not 0 <= sure <= 100:
        raise InvalidCandidate("confidence is a whole number from 0 to 100")
    _check_text(value["gap"], "the gap")
    if not _are_texts(value["cites"]):
        raise InvalidCandidate("cites is a list of names of sources")
    if value["verdict"] not in SETTLED and (sure or not value["gap"]):
        raise InvalidCandidate("what is not settled has a gap, and no confidence")


def check_judgement(value: Mapping[str, Any], item: Mapping[str, Any]) -> None:
    """A judgement of exactly this claim: it cites what was shown, has something to stand on, and is no surer than its premises.

    Raises:
        InvalidCandidate: names what is wrong.
    """
    check_judgement_value(value)
    shown, premises = {one["source"] for one in item["evidence"]}, item["premises"]
    if strange := sorted(set(value["cites"]) - shown):
        raise InvalidCandidate(f"it cites what was not shown: {', '.join(strange)}")
    if value["verdict"] in SETTLED and not value["cites"] and not premises:
        raise InvalidCandidate("it is settled on nothing")
    if value["verdict"] == "supported":
        if weak := [one["claim"] for one in premises if one["verdict"] != "supported"]:
            raise InvalidCandidate(f"it rests on what is not supported: {', '.join(weak)}")
        if any(one["confidence"] < value["confidence"] for one in premises):
            raise InvalidCandidate("it is surer than what it rests on")


def check_opinions(value: Any, claims: Sequence[str] | None = None) -> None:
    """The shape of a second opinion: a text on each of the claims, or on some of them.

    Raises:
        InvalidCandidate: names what is wrong.
    """
    opinions = value.get("opinions") if isinstance(value, Mapping) and set(value) == {"opinions"} else None
    if not isinstance(opinions, list) or len(opinions) > MAX_CLAIMS:
        raise InvalidCandidate("a second opinion is a list of opinions")
    for one in opinions:
        if not isinstance(one, Mapping) or set(one) != {"claim", "text"} or not isinstance(one["claim"], str):
            raise InvalidCandidate("an opinion has claim and text")
        _check_text(one["text"], "an opinion")
        if claims is not None and one["claim"] not in claims:
            raise InvalidCandidate(f"nobody asked about {one['claim']!r:.80}")


def _check_text(value: Any, what: str) -> None:
    if not isinstance(value, str) or len(value) > MAX_TEXT or not value.isprintable():
        raise InvalidCandidate(f"{what} is one line of at most {MAX_TEXT} characters")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value) and len(value) <= MAX_SOURCES


# ---------------------------------------------------------------------- what follows


def trust(state: State) -> str:
    """Whether somebody must say that a source may be read."""
    return "ask" if state.results["vet"]["asked"] else "known"


def admitted(state: State) -> list[Json]:
    """The versions that may be read now: those of trusted publishers, and those that were approved of exactly this look."""
    vetted, approved = state.results["vet"], state.results.get("admit")
    more = approved["sources"] if approved and approved["look"] == vetted["look"] else ()
    whose = {"run": str(state.workflow_id), "archive": state.input["archive"]}
    return [{**one, **whose} for one in (*vetted["known"], *more)]


def wave(state: State) -> str:
    """Whether there is a claim that can be judged now."""
    return "some" if state.results["affected"]["ready"] else "none"


def to_judge(state: State) -> list[Json]:
    return [dict(one) for one in state.results["affected"]["ready"]]


def gaps(state: State) -> str:
    """What is to be done about what is open."""
    lacks = state.results["requests"]
    if lacks["order"]:
        return "order"
    return contested(state)


def contested(state: State) -> str:
    """Whether another agent is to be asked, something is to be waited for, or nothing is open."""
    lacks = state.results["requests"]
    if lacks["contested"]:
        return "second"
    return "wait" if lacks["documents"] or lacks["missing"] or lacks["colleague"] else "none"


def documents(state: State) -> list[str]:
    """Keys of the documents that are wanted and not there."""
    return list(state.results["requests"]["documents"])


def datasets(state: State) -> list[str]:
    """Keys of all data that claims stand on: a new release of what was read counts as much as the first."""
    return list(state.results["requests"]["datasets"])


def colleagues(state: State) -> list[str]:
    """The run of the other agent, until it was heard."""
    asked, heard = state.results.get("colleague"), state.results.get("hear")
    return [asked["id"]] if asked and asked["id"] not in (heard or {}).get("heard", ()) else []


def to_weigh(state: State) -> Json:
    return {"run": str(state.workflow_id), "claims": list(state.results["requests"]["contested"])}


def order_wanted(state: State) -> Json:
    return {"names": list(state.results["requests"]["order"])}


def goes_on(state: State) -> str:
    """Whether the question stays open after it was answered: only where there are data that may be released anew."""
    return "watch" if state.input.get("watch") and datasets(state) else "end"


def judgement(state: State) -> Json:
    """The result of the run that judges one claim."""
    made = state.results["judge"]
    return {**made["value"], "decision": made["digest"]}


def opinions(state: State) -> Json:
    """The result of the other agent's run."""
    return dict(state.results["weigh"]["value"])


def what_came(state: State) -> list[str]:
    """Which events have come, by name; what they say is not believed, and not kept."""
    return [str(event["name"]) for event in state.events]


def answered(state: State) -> Json:
    """The result of the workflow."""
    return dict(state.results["answer"])
