"""Rules about objectives: each is about something that happens, and could be missed before the flow ends by itself."""

from __future__ import annotations

from collections.abc import Iterator

from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes import Approval, Ask
from flows.core.objectives import Objectives
from flows.core.policies import Deadline


def objectives_can_be_missed(view: View) -> Iterator[Problem]:
    """One that nothing can miss says nothing."""
    given, whole = view.definition.objectives, view.definition.deadline
    if not isinstance(given, Objectives):
        return
    within = given.complete_within
    if within is not None and isinstance(whole, Deadline) and whole.moves and within > whole.after:
        hint = "Promise less time than the deadline gives, or leave it away."
        message = "Meta.objectives: complete_within is longer than the deadline of the flow, so no run can miss it."
        yield view.problem("W007", message, hint)
    if given.answered_within is not None and not any(isinstance(node, Approval | Ask) for node in view.nodes.values()):
        hint = "Leave answered_within away: no node of the flow asks people. (What stops at a person is measured all the same.)"
        yield view.problem("W007", "Meta.objectives: answered_within is about answers, and the flow asks nobody.", hint)
