"""Rules about gates: each thing that they ask for can be had, and the nodes that they stand on exist."""

from __future__ import annotations

from collections.abc import Iterator

from flows.core.lint.options import function_problems
from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes import Activity, Decision
from flows.core.requirements import Fresh, Gate


def _gates(view: View) -> Iterator[tuple[str, Gate]]:
    for name, node in view.nodes.items():
        if isinstance(node.gate, Gate):
            yield name, node.gate


def gates_stand_on_activities(view: View) -> Iterator[Problem]:
    """What is looked up is looked up by an attempt; a node without attempts passes nothing."""
    for name, gate in _gates(view):
        asked = [option for option in gate.shape if option != "approved_by"]
        if asked and not isinstance(view.nodes[name], Activity):
            hint = "Put the gate on the activity that does what it guards."
            yield view.problem("E071", f"Node {name!r} asks for {', '.join(asked)} but runs no activity.", hint, name)


def verifiers_verify(view: View) -> Iterator[Problem]:
    """`verified_by` names nodes with `verifies=`, and that names a node that can have a candidate."""
    for name, gate in _gates(view):
        for verifier in gate.verified_by:
            node = view.nodes.get(verifier)
            if not (isinstance(node, Activity) and node.verifies):
                hint = f'Name an activity with verifies=: {verifier} = Activity(…, verifies="the node of the candidate", then=…).'
                yield view.problem("E072", f"Node {name!r}: verified_by={verifier!r} verifies nothing.", hint, name)
    for name, node in view.nodes.items():
        if isinstance(node, Decision) and node.verifies:
            hint = "Let an activity verify it; what a model says of a model's work is no verification."
            yield view.problem("E072", f"Node {name!r} decides, so it verifies nothing: verifies={node.verifies!r}.", hint, name)
            continue
        if isinstance(node, Activity) and node.verifies and not isinstance(view.nodes.get(node.verifies), Activity):
            hint = "Name the Decision (or another activity) whose candidate is verified."
            yield view.problem("E072", f"Node {name!r}: verifies={node.verifies!r} is not a node with a candidate.", hint, name)


def what_is_fresh_was_seen(view: View) -> Iterator[Problem]:
    """Somebody has looked at what must be fresh before; one name is one thing."""
    probes: dict[str, Fresh] = {}
    for name, gate in _gates(view):
        for what, fresh in gate.probes.items():
            works = function_problems(view, f"Node {name!r}, fresh {what!r}", fresh.probe, name, works=True)
            yield from works
            if probes.setdefault(what, fresh).probe != fresh.probe:
                hint = "Give each thing a name of its own, or use the same probe."
                yield view.problem("E073", f"Node {name!r}: fresh {what!r} is looked at by another probe elsewhere.", hint, name)
        if gate.fresh and not view.definition.baselines:
            hint = "Let a Decision, or an activity with verifies=, come before it: what it saw then is what must still be so."
            yield view.problem(
                "E074", f"Node {name!r} wants {', '.join(gate.fresh)} fresh, and nobody looks at it before.", hint, name
            )


def commitments_are_begun(view: View) -> Iterator[Problem]:
    """A gate stands on commitments that some node begins."""
    begun = {one.name for node in view.nodes.values() for one in node.commitments}
    for name, gate in _gates(view):
        for missing in [one for one in gate.commitments if one not in begun]:
            hint = f'Begin it: Activity(…, commits=Commits("{missing}", release=…)).'
            yield view.problem("E075", f"Node {name!r} stands on the commitment {missing!r}, which no node begins.", hint, name)


def envelopes_are_counted(view: View) -> Iterator[Problem]:
    """An envelope counts failed verifications: some node must verify what it is about."""
    verified = {node.verifies for node in view.nodes.values() if isinstance(node, Activity)}
    errors: dict[str, int] = {}
    for name, gate in _gates(view):
        envelope = gate.competence
        if envelope is None:
            continue
        if envelope.of not in verified:
            hint = f'Verify its candidates: Activity(…, verifies="{envelope.of}", then=…).'
            yield view.problem(
                "E076", f"Node {name!r}: nobody verifies {envelope.of!r}, so nothing closes its envelope.", hint, name
            )
        if errors.setdefault(envelope.of, envelope.errors) != envelope.errors:
            hint = "Say the same number everywhere: there is one envelope of a node."
            yield view.problem(
                "E076", f"Node {name!r} allows another number of errors of {envelope.of!r} than elsewhere.", hint, name
            )


def placements_are_chosen(view: View) -> Iterator[Problem]:
    """What may be done in one place only is taken up there: else a worker elsewhere takes it, and the run stops."""
    for name, gate in _gates(view):
        node = view.nodes[name]
        elsewhere = [one for one in gate.placement if isinstance(node, Activity) and node.placement != one]
        if elsewhere:
            hint = f'Add placement="{elsewhere[0]}" to the node, so that only workers there take it; or silence this check.'
            message = f"Node {name!r}: its gate wants the placement {elsewhere[0]!r}, and any worker may take it."
            yield view.problem("W003", message, hint, name)


RULES = (
    gates_stand_on_activities,
    verifiers_verify,
    what_is_fresh_was_seen,
    commitments_are_begun,
    envelopes_are_counted,
    placements_are_chosen,
)
