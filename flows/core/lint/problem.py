"""What a rule finds, and the list of everything that can be found: one stable id per mistake."""

from __future__ import annotations

from dataclasses import dataclass

#: id → what it stands for. `W` are warnings; everything else stops `manage.py check`.
CATALOGUE: dict[str, str] = {
    "E001": "a flow without nodes",
    "E002": "a flow without an End",
    "E003": "a flow's name is not kebab-case",
    "E004": "a flow's version is not a whole number from 1",
    "E005": "an unknown option in class Meta",
    "E006": "a route to a node that does not exist",
    "E007": "a node that cannot be reached",
    "E008": "a node from which no End can be reached",
    "E009": "a wait without a deadline",
    "E010": "a node that does not say what comes next",
    "E011": "a choice without a route",
    "E012": "a cycle without a limit on visits",
    "E013": "a node with a reserved name",
    "E014": "a cycle without a durable step",
    "E015": "a limit on visits where visits are not recorded",
    "E016": "a gate that asks for the approval of something that is not an Approval",
    "E017": "an approval of something that is not a node with a result",
    "E018": "an approval that can be reached before there is anything to approve",
    "E019": "a key of on= that is neither an error class nor a Verdict",
    "E020": "something that is not a function where one is needed",
    "E021": "an async function, or the path of one, where a pure function is needed",
    "E022": "a function that cannot be called with its one argument",
    "E023": "a dotted path that cannot be imported",
    "E024": "an activity without a queue",
    "E025": "a timeout that is not positive, or too long",
    "E026": "two flows with one name and version",
    "E027": "an option of the wrong type",
    "E028": "one node under two names",
    "E029": "an approval that a node other than an activity would have to use up",
    "E030": "a route that is never taken",
    "E031": "a wait without an event type or key",
    "E032": "two error classes of one name in on=",
    "E033": "an effect or a commitment on something that is not one call",
    "E034": "two commitments of one name",
    "E035": "a node that fulfils a commitment which no node begins",
    "E036": "a commitment whose deadline leads to a node",
    "E037": "an optional Decision",
    "E038": "effect= and effects= on one node",
    "E039": "a name that cannot be recorded",
    "E040": "two things of one kind and name beside the flows",
    "E045": "a migration from something that is not an older version",
    "E046": "a migration from or to a node that does not exist",
    "E047": "a node of an older version that has no place in the newer one",
    "E051": "a deadline with a policy that its kind does not have",
    "E052": "a deadline whose policy finds nothing to act on",
    "E053": "a wait that may go on for ever after its deadline",
    "E054": "two freshness budgets of one name that differ",
    "E061": "an attempt that needs more than the budget allows",
    "E071": "a gate that must be looked up, on a node without attempts",
    "E072": "a verifier that verifies nothing",
    "E073": "one name for two probes",
    "E074": "something that must be fresh, and at which nobody looks before",
    "E075": "a gate that stands on a commitment which no node begins",
    "E076": "a competence envelope that nothing closes, or of two sizes",
    "E077": "an authority that is no permission",
    "E078": "an approval or an ask that asks nobody, or not as it is written",
    "E079": "an ask whose form cannot be filled in, or whose answers lead nowhere",
    "E080": "an approval of a part of what was verified as a whole",
    "E081": "a wait for several events that cannot be",
    "E082": "an event type with an order that is none",
    "E083": "runs that an event begins, without a user or a key",
    "E084": "a schedule that cannot be read",
    "E085": "a schedule of a flow that is not there, or with an input that cannot be stored",
    "E086": "a schedule with an unknown time zone or policy",
    "E087": "business time without a calendar",
    "E088": "a need or a limit that is not declared",
    "E089": "a rate, ceiling, ramp or patience that cannot be",
    "E090": "capacity for which its node could not wait",
    "E091": "a node that runs a flow which is not there",
    "E093": "a node that may wait for its children, or its job, for ever",
    "E094": "a child without a way on when it fails",
    "E095": "a job about whose end nothing can be heard",
    "E096": "flows that start one another in a circle, so that none can end",
    "E097": "a run that continues as a new one while it holds a commitment",
    "E098": "more runs at once than can be, or none",
    "E099": "a declaration that cannot be checked",
    "E131": "a tool that no model can call",
    "E132": "an agent turn whose calls nothing bounds",
    "W001": "probes of an effect about which nobody can be asked",
    "W002": "an effect of which only a person can say what became of it",
    "W003": "a gate that wants a placement which the node does not choose",
    "W004": "a schedule without an accountable user",
    "W005": "a patience longer than the deadline of its flow",
    "W006": "a job that cannot be given back",
    "W007": "an objective that nothing can miss",
    "W131": "a tool that says that it changes something, and declares no effect",
}

PREFIX = "outlast_flows."


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a flow.

    Attributes:
        id: `outlast_flows.E…` or `W…`, a key of `CATALOGUE` with its prefix. severity: "error" or "warning".
        where: the dotted path of the flow class. message: what is wrong. hint: the way out, never empty.
        node: the node that it is about, if it is about one.
    """

    id: str
    severity: str
    where: str
    message: str
    hint: str
    node: str = ""


def problem(code: str, where: str, message: str, hint: str, node: str = "") -> Problem:
    """The problem of that code; it must be in the catalogue."""
    assert code in CATALOGUE, code
    return Problem(PREFIX + code, "warning" if code.startswith("W") else "error", where, message, hint, node)
