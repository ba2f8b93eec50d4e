"""The model at the decision points: an interface that a real provider fits behind, and a stand-in that needs no network.

There are three tasks: a plan of the question, the judgement of one claim, and a second opinion. `instructions` are ours and constant. The
context has facts that our code recorded, and data: the catalogue, the texts of the sources, statements, and the opinion of another agent, fenced
and labelled. An adapter sends both as contents of their own, and parses the answer into a `ModelAnswer`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from flows import Context
from project.agents.research.graph import OPINION

Json = dict[str, Any]

PLAN, JUDGE, WEIGH = "plan", "judge", "weigh"
INSTRUCTIONS = {
    PLAN: f"Divide the question into claims that sources of the catalogue can settle, and say what rests on what. {Context.HOW_TO_READ}",
    JUDGE: f"Judge the one claim by the sources given and by its premises, and by nothing else. {Context.HOW_TO_READ}",
    WEIGH: f"The sources disagree on these claims. Say which side is the stronger, and why. {Context.HOW_TO_READ}",
}
CATALOGUE, STATEMENTS, QUESTION = "catalogue", "plan", "question"  # sources of data; a source's text has "source:NAME"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    task: str
    context: Context
    choices: tuple[str, ...]

    @property
    def instructions(self) -> str:
        return INSTRUCTIONS[self.task]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What our code recorded, by name."""
        return {item.name: json.loads(item.text) for item in self.context.items("extra") if not item.untrusted}

    @property
    def digest(self) -> str:
        return _digest([self.instructions, self.context.hash, self.choices])

    def texts(self, source: str) -> list[str]:
        return [item.text for item in self.context.items("extra") if item.untrusted and item.source.startswith(source)]


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A proposal and nothing more: code checks it, and computes what follows from it."""

    choice: str
    value: Mapping[str, Any]
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return _digest([self.choice, dict(self.value)])


class Model(Protocol):
    name: str

    def complete(self, request: ModelRequest) -> ModelAnswer: ...


def get_model() -> Model:
    """The model of the setting RESEARCH_AGENT_MODEL, a dotted path; without it, the stand-in."""
    path = getattr(settings, "RESEARCH_AGENT_MODEL", f"{__name__}.RuleBasedModel")
    model: Model = import_string(path)()
    return model


class RuleBasedModel:
    """A deterministic stand-in: the answer depends on the request alone.

    Each topic of the catalogue ("bridge/rust") is a claim, which rests on the topics below it ("bridge" on "bridge/rust"). Of a text it
    understands lines such as `bridge/rust: holds 80` and `bridge/rust: fails 60`.
    """

    name = "rules-1"

    def complete(self, request: ModelRequest) -> ModelAnswer:
        answer = {PLAN: _plan, JUDGE: _judge, WEIGH: _weigh}[request.task](request)
        said = len(json.dumps(answer.value))
        return replace(answer, usage={"input_tokens": request.context.tokens, "output_tokens": -(-said // 4)})


def _plan(request: ModelRequest) -> ModelAnswer:
    entries: list[Json] = json.loads(*request.texts(CATALOGUE))
    about: dict[str, list[str]] = {}
    for entry in entries:
        for topic in entry["about"]:
            about.setdefault(topic, []).append(entry["name"])
            parts = topic.split("/")
            for count in range(1, len(parts)):
                about.setdefault("/".join(parts[:count]), [])
    if not about:
        return ModelAnswer("give_up", {"reason": "The archive has nothing on it."})
    claims = [
        {
            "name": topic,
            "statement": f"{topic} holds",
            "sources": sorted(sources),
            "premises": sorted(other for other in about if other.rpartition("/")[0] == topic),
        }
        for topic, sources in sorted(about.items())
    ]
    return ModelAnswer("plan", {"claims": claims})


def _judge(request: ModelRequest) -> ModelAnswer:
    claim, premises = request.facts["claim"], request.facts["premises"]
    votes = {
        item.source.removeprefix("source:"): _vote(item.text, claim) for item in request.context.items("extra") if item.untrusted
    }
    votes = {source: vote for source, vote in votes.items() if vote}
    opinion = votes.pop(f"{OPINION}{claim}", None)
    sides = {vote[0] for vote in votes.values()}
    if len(sides) > 1 and opinion is None:
        return _judged("contested", 0, "The sources disagree.", votes)
    side, sure = opinion or ("", 0)
    if len(sides) == 1:
        side, sure = next(iter(sides)), min(vote[1] for vote in votes.values())
    against = [one for one in premises if one["verdict"] == "contradicted"]
    open_ones = [one["claim"] for one in premises if one["verdict"] in ("unknown", "contested")]
    if side == "fails" or against:
        return _judged("contradicted", sure if side == "fails" else against[0]["confidence"], "", votes)
    if open_ones:
        return _judged("unknown", 0, f"It rests on what is not known: {', '.join(open_ones)}.", votes)
    if not side and not premises:
        return _judged("unknown", 0, "No source says anything about it.", votes)
    return _judged("supported", min([*([sure] if side else []), *(one["confidence"] for one in premises)]), "", votes)


def _judged(verdict: str, confidence: int, gap: str, votes: Mapping[str, Any]) -> ModelAnswer:
    return ModelAnswer("judged", {"verdict": verdict, "confidence": confidence, "gap": gap, "cites": sorted(votes)})


def _weigh(request: ModelRequest) -> ModelAnswer:
    texts = request.texts("source:")
    opinions = []
    for claim in request.facts["claims"]:
        votes = [vote for vote in (_vote(text, claim) for text in texts) if vote]
        sums = {side: sum(sure for found, sure in votes if found == side) for side in ("holds", "fails")}
        side = "holds" if sums["holds"] >= sums["fails"] else "fails"
        opinions.append({"claim": claim, "text": f"{claim}: {side} 60"})
    return ModelAnswer("weighed", {"opinions": opinions})


def _vote(text: str, claim: str) -> tuple[str, int] | None:
    found = re.search(rf"^{re.escape(claim)}: (holds|fails) (\d{{1,2}}|100)$", text, re.MULTILINE)
    return (found[1], int(found[2])) if found else None


def _digest(value: Any) -> str:
    return "sha256:" + hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
