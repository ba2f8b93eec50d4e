"""Base checks: may this workflow go on at all? Asked at every wake-up; they look only at what comes with the claim."""

from __future__ import annotations

from flows.core.gate.check import Asked, Check, Known, Refusal
from flows.core.protocol import IntentStatus
from flows.core.verdicts import Verdict


def _intent(asked: Asked) -> Known:
    return {"bound": asked.state.intent_version, "current": asked.facts.intent_version, "status": asked.facts.intent_status}


def check_intent(known: Known) -> Refusal | None:
    """The workflow works for the current version of an active intent."""
    if known["status"] == IntentStatus.ACTIVE and known["current"] == known["bound"]:
        return None
    reason = f"bound to version {known['bound']}; the intent is {known['status']} at version {known['current']}"
    return Refusal(Verdict.INTENT_SUPERSEDED, reason)


def _policy(asked: Asked) -> Known | None:
    fact = asked.facts.policy
    if fact is None:
        return None
    return {"name": fact.name, "bound": fact.bound, "current": fact.current, "blocks": fact.blocks}


def check_policy(known: Known) -> Refusal | None:
    """No version of the policy that came after the one which the workflow is bound to stops older runs."""
    if known["current"] == known["bound"] or not known["blocks"]:
        return None
    reason = f"bound to {known['name']} version {known['bound']}; version {known['current']} stops runs of older versions"
    return Refusal(Verdict.POLICY_BLOCKED, reason)


def _definition(asked: Asked) -> Known:
    definition, state = asked.definition, asked.state
    return {
        "started": asked.facts.fingerprint,
        "loaded": definition.fingerprint,
        "version": definition.version,
        "node": state.node,
        "known": state.node in definition.nodes,
    }


def check_definition(known: Known) -> Refusal | None:
    """The definition that is loaded has the shape that the workflow was started with, and knows its node."""
    if known["started"] != known["loaded"]:
        reason = f"started with fingerprint {known['started']}, version {known['version']} is now {known['loaded']}"
        return Refusal(Verdict.WORKFLOW_MIGRATION_REQUIRED, reason)
    if not known["known"]:
        return Refusal(Verdict.WORKFLOW_MIGRATION_REQUIRED, f"node {known['node']} is not in version {known['version']}")
    return None


def _release(asked: Asked) -> Known | None:
    fact = asked.facts.release
    return None if fact is None else {"pinned": fact.pinned, "current": fact.current, "refusal": fact.refusal}


def check_release(known: Known) -> Refusal | None:
    """The behavioural release that the workflow is pinned to may go on here."""
    return Refusal(Verdict.RELEASE_INCOMPATIBLE, known["refusal"]) if known["refusal"] else None


CHECKS = (
    Check("intent", _intent, check_intent),
    Check("policy", _policy, check_policy),
    Check("definition", _definition, check_definition),
    Check("release", _release, check_release),
)
