"""Checks of what only a look can tell: what was decided on is still so, the budget, and whether this may be done at all, by whom and where."""

from __future__ import annotations

from typing import Any

from flows.core.gate.check import Asked, Check, Known, Refusal
from flows.core.nodes.approval import Approval
from flows.core.nodes.pipeline import Pipeline
from flows.core.verdicts import Verdict


def _fresh(asked: Asked) -> Known | None:
    gate, look = asked.gate, asked.facts.look
    if gate is None or look is None or not gate.fresh:
        return None
    if _is_under_way(asked):
        return None  # what this visit has done may be what has changed; it passed before it did that
    found: dict[str, Any] = {}
    for name, probe in gate.probes.items():
        baseline, seen = look.baseline.get(name), look.seen.get(name)
        old = baseline is not None and probe.within is not None and asked.state.now - baseline.at > probe.within
        found[name] = {"baseline": baseline and baseline.version, "seen": seen and seen.version, "old": old}
    return found


def _is_under_way(asked: Asked) -> bool:
    activity = asked.state.activity
    if activity is None:
        return False
    return activity.begun or (isinstance(asked.node, Pipeline) and activity.step != asked.node.steps[0].name)


def check_fresh(known: Known) -> Refusal | None:
    """Everything that was decided on is as it was then, and was looked at within its budget."""
    for name, one in known.items():
        if one["baseline"] is None:
            return Refusal(Verdict.REVALIDATION_REQUIRED, f"nobody has looked at {name} when it was decided")
        if one["old"]:
            return Refusal(Verdict.REVALIDATION_REQUIRED, f"what was decided on {name} is older than it may be")
        if one["seen"] != one["baseline"]:
            return Refusal(Verdict.REVALIDATION_REQUIRED, f"{name} was at {one['baseline']}, and is at {one['seen']}")
    return None


def _competence(asked: Asked) -> Known | None:
    gate, look = asked.gate, asked.facts.look
    if gate is None or look is None or gate.competence is None:
        return None
    return {"of": gate.competence.of, "refusal": look.competence}


def check_competence(known: Known) -> Refusal | None:
    """The envelope is open."""
    return Refusal(Verdict.COMPETENCE_EXCEEDED, known["refusal"]) if known["refusal"] else None


def _authority(asked: Asked) -> Known | None:
    gate, look = asked.gate, asked.facts.look
    if gate is None or look is None or not gate.authority:
        return None
    return {name: look.authority.get(name, "nobody was asked about it") for name in gate.authority}


def check_authority(known: Known) -> Refusal | None:
    """The accountable user may do this now."""
    for name, refusal in known.items():
        if refusal:
            return Refusal(Verdict.AUTHORITY_DENIED, f"{name}: {refusal}")
    return None


def _budget(asked: Asked) -> Known | None:
    look = asked.facts.look
    if isinstance(asked.node, Approval):
        return {"refusal": asked.facts.reviews}
    return None if look is None or asked.node is None else {"refusal": look.budget}


def check_budget(known: Known) -> Refusal | None:
    """There is budget for the attempt."""
    return Refusal(Verdict.BUDGET_EXHAUSTED, known["refusal"]) if known["refusal"] else None


def _placement(asked: Asked) -> Known | None:
    gate, look = asked.gate, asked.facts.look
    if gate is None or look is None or not gate.placement:
        return None
    return {"wanted": list(gate.placement), "refusal": look.placement}


def check_placement(known: Known) -> Refusal | None:
    """The work may be done where this worker is."""
    return Refusal(Verdict.PLACEMENT_DENIED, known["refusal"]) if known["refusal"] else None


CHECKS = (
    Check("fresh", _fresh, check_fresh),
    Check("budget", _budget, check_budget),
    Check("competence", _competence, check_competence),
    Check("authority", _authority, check_authority),
    Check("placement", _placement, check_placement),
)
