"""Rules about capacity: what a node needs is waited for, its patience ends, and new runs are counted by numbers that can be."""

from __future__ import annotations

from collections.abc import Iterator

from flows.core.admission import Admission
from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes import Activity
from flows.core.policies import Deadline

DEFAULT = Activity("").patience


def needs_are_names(view: View) -> Iterator[Problem]:
    """What an activity needs is named."""
    for name, node in view.nodes.items():
        for option, names in (("needs", "needed"), ("limits", "limited")) if isinstance(node, Activity) else ():
            try:
                getattr(node, names)
            except Exception as fault:  # noqa: BLE001 - whatever was written there
                yield view.problem("E027", f"Node {name!r}: {fault}", f'Write {option}="payments", or several names.', name)


def capacity_is_waited_for(view: View) -> Iterator[Problem]:
    """What an activity needs it waits for; its patience ends, in time for the flow's own end."""
    whole = view.definition.deadline
    for name, node in view.nodes.items():
        patience = view.option(name, "patience")
        if not isinstance(node, Activity):
            continue
        if node.holds and patience is None:
            hint = "Leave patience= away (a day, then a person), or give one: patience=Deadline(hours=2, then=ESCALATE)."
            yield view.problem(
                "E090", f"Node {name!r} needs capacity and has patience=None: it could not wait for it.", hint, name
            )
        if not isinstance(patience, Deadline):
            continue
        if not patience.moves:
            hint = "It may be a node, ESCALATE, HUMAN, CANCEL or FAIL: after it the run waits no longer."
            yield view.problem("E051", f"Node {name!r}, patience: then={patience.word!r} would leave it waiting.", hint, name)
        if patience is not DEFAULT and isinstance(whole, Deadline) and patience.after > whole.after:
            hint = "Give it less, or the flow more: what the flow's deadline says comes first."
            yield view.problem("W005", f"Node {name!r}: its patience is longer than the deadline of the flow.", hint, name)


def admission_fits(view: View) -> Iterator[Problem]:
    """What becomes of a run whose patience is over needs no node of the flow: it has not begun."""
    admission = view.definition.admission
    if not isinstance(admission, Admission):
        return
    patience = admission.patience
    if not patience.moves or patience.target:
        hint = "It may be ESCALATE, HUMAN, CANCEL or FAIL."
        yield view.problem(
            "E089", f"Meta.admission, patience: then={patience.word!r} is nothing for a run that has not begun.", hint
        )
