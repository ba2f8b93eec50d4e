"""Rules about approvals: asked about something that exists, and used up by the activity that carries it out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from flows.core.errors import DefinitionError
from flows.core.lint.problem import Problem
from flows.core.lint.view import Edge, View, reachable
from flows.core.nodes import Activity, Approval, Ask, Escalation, Reviewers, Wait
from flows.core.requirements import Gate
from flows.core.spans import LONGEST

#: So many steps, and so many reminders and escalations, are taken.
MAX_STEPS = 20


def gates_ask_approvals(view: View) -> Iterator[Problem]:
    """`approved_by` names an Approval, and the node is one that uses an approval up by being entered."""
    for name, node in view.nodes.items():
        if not isinstance(node.gate, Gate) or node.gate.approved_by is None:
            continue
        asked = view.nodes.get(node.gate.approved_by)
        if asked is not None and not isinstance(asked, Approval):
            hint = "Name the Approval whose answer is needed; only it asks people about one exact candidate."
            yield view.problem("E016", f"Node {name!r}: approved_by={node.gate.approved_by!r} is not an Approval.", hint, name)
        if not isinstance(node, Activity):
            hint = "Put the gate on the activity that carries the approved thing out: entering that uses the approval up."
            yield view.problem("E029", f"Node {name!r} asks for an approval but runs no activity.", hint, name)


def candidates_exist(view: View) -> Iterator[Problem]:
    """What an Approval asks about is a node with a result, and has one whenever the Approval can be reached."""
    for name, node in view.nodes.items():
        if not isinstance(node, Approval) or not isinstance(node.candidate, str):
            continue
        asked = view.nodes.get(node.candidate)
        if not isinstance(asked, Activity | Wait | Approval | Ask) or node.candidate == name:
            hint = "Name the node that produces what is asked about: a Decision, or another node with a result."
            yield view.problem("E017", f"Node {name!r}: candidate={node.candidate!r} is not a node with a result.", hint, name)
        elif view.routed and name in _reached_without(view, node.candidate):
            hint = f"Let every way to {name!r} lead through {node.candidate!r}, and leave it by a result, not by an error."
            message = f"Node {name!r} can be reached before {node.candidate!r} has a result to ask about."
            yield view.problem("E018", message, hint, name)


def parts_are_not_verified(view: View) -> Iterator[Problem]:
    """A gate that wants a verification of the candidate cannot let reviewers keep a part of it: nothing has verified that."""
    for name, node in view.nodes.items():
        if not isinstance(node.gate, Gate) or not node.gate.verified_by:
            continue
        asked = view.nodes.get(node.gate.approved_by or "")
        if isinstance(asked, Approval) and view.option(asked.name, "subset"):
            hint = "Leave subset= away and let reviewers ask for changes: the next candidate is verified as a whole."
            message = f"Node {name!r} wants a verification, and {asked.name!r} lets reviewers keep a part of the candidate."
            yield view.problem("E080", message, hint, name)


def asks_somebody(view: View) -> Iterator[Problem]:
    """Every step of an Approval, and an Ask, names people, and every moment of it comes after the request."""
    for name, node in view.nodes.items():
        if not isinstance(node, Approval | Ask):
            continue
        for wrong, hint in _miswritten(view, name, node):
            yield view.problem("E078", f"Node {name!r} {wrong}", hint, name)


def _miswritten(view: View, name: str, node: Approval | Ask) -> Iterator[tuple[str, str]]:
    examples = {
        "steps": (Reviewers, 'steps=[Reviewers("developers", need=2)]'),
        "escalation": (Escalation, 'escalation=[Escalation("managers", hours=8)]'),
        "reminders": (timedelta, "reminders=[hours(4)]"),
    }
    for option, (kind, example) in examples.items():
        if not hasattr(node, option):
            continue
        given = view.option(name, option)
        if not isinstance(given, list | tuple):
            return  # that is said of every option
        if strange := [one for one in given if not isinstance(one, kind)]:
            yield f"has {strange[0]!r:.60} in {option}=.", f"Write {example}."
            return
        if len(given) > MAX_STEPS:
            yield f"has {len(given)} entries in {option}=.", f"At most {MAX_STEPS} are taken."
    if any(not timedelta(0) < moment <= LONGEST for moment in node.reminders):
        yield (
            "has a reminder that comes at no moment after the request.",
            "A reminder comes some time after it: reminders=[hours(4)].",
        )
    try:
        own, ladder = node.own, node.ladder
    except (DefinitionError, TypeError) as fault:
        yield f"cannot ask: {fault}", 'Name who may answer: role="reviewers", pool=…, permission=…, to=… or steps=[Reviewers(…)].'
        return
    if isinstance(node, Approval) and node.steps and own != Reviewers():
        yield "has steps= beside role, pool, permission, to or need.", "Say whom each step asks in steps= alone."
    if any(step.empty for step in ladder):
        yield "asks nobody.", 'Name who may answer: role="a Django group", pool=…, permission=…, to=… or steps=[Reviewers(…)].'


def _reached_without(view: View, candidate: str) -> set[str]:
    """The nodes that can be reached while `candidate` has no result.

    A limit on visits counts only where the node can be entered again without a result of the candidate.
    """
    starts = view.starts()
    edges = [edge for edge in view.all_edges() if edge.source != candidate or not edge.result]
    plain = [edge for edge in edges if not edge.visits]
    again = [edge for edge in edges if edge.visits and _returns(edge, plain)]
    return reachable(starts, plain + again)


def _returns(edge: Edge, edges: list[Edge]) -> bool:
    return edge.source in reachable([other.target for other in edges if other.source == edge.source], edges)
