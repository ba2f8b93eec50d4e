"""Finds the mistakes of a flow before it runs (G5). Pure: only what the declaration says; imports are tried by `flows.checks`.

A rule is a small function of a `View` that yields problems; a later part adds its rules to `RULES` and their ids to the catalogue.
Rules about the shape of the graph keep silent while a route leads nowhere, because one wrong name would make half a flow unreachable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from flows.core.definition import Definition, Flow
from flows.core.lint import (
    agents,
    approvals,
    asks,
    budgets,
    capacity,
    children,
    circles,
    deadlines,
    declaration,
    effects,
    events,
    gates,
    jobs,
    loops,
    objectives,
    options,
    routes,
    versions,
)
from flows.core.lint.problem import CATALOGUE, PREFIX, Problem, problem
from flows.core.lint.view import View

Rule = Callable[[View], Iterator[Problem]]

RULES: tuple[Rule, ...] = (
    declaration.has_nodes,
    declaration.is_named,
    declaration.has_known_options,
    declaration.has_free_names,
    declaration.has_names_that_can_be_recorded,
    options.has_types,
    options.has_meta_types,
    options.has_functions,
    options.times_are_positive,
    options.causes_are_classes,
    options.waits_end,
    routes.says_what_comes_next,
    routes.leads_to_known_nodes,
    routes.takes_all_routes,
    routes.is_reached,
    routes.reaches_an_end,
    effects.stand_on_activities,
    effects.optional_leads_on,
    effects.are_declared_rightly,
    effects.are_told_apart,
    effects.can_be_settled,
    effects.commitments_are_sound,
    budgets.attempts_fit,
    capacity.needs_are_names,
    capacity.capacity_is_waited_for,
    capacity.admission_fits,
    objectives.objectives_can_be_missed,
    deadlines.slas_are_deadlines,
    deadlines.policies_fit,
    deadlines.waits_end_after_their_deadline,
    deadlines.budgets_agree,
    deadlines.business_time_has_a_calendar,
    approvals.gates_ask_approvals,
    approvals.candidates_exist,
    approvals.asks_somebody,
    approvals.parts_are_not_verified,
    asks.forms_can_be_asked,
    asks.answers_lead_on,
    events.parts_can_come,
    events.begins_for_somebody,
    children.they_end,
    children.failures_have_a_way,
    children.as_many_as_can_be,
    children.continues_with_nothing_owed,
    jobs.they_end,
    jobs.something_is_heard,
    jobs.can_be_given_back,
    *gates.RULES,
    *agents.RULES,
    loops.limits_count,
    loops.cycles_have_a_step,
    loops.cycles_end,
    versions.migrates_from_older,
)


def problems(definition: Definition) -> list[Problem]:
    """Everything that is wrong with a flow, in the order of the rules; never a traceback."""
    view = View(definition)
    found = [one for rule in RULES for one in _safely(rule, view)]
    explained = {one.node for one in found}
    return found + [_unreadable(view, name, fault) for name, fault in view.unreadable.items() if name not in explained]


def problems_of_all(classes: Iterable[type[Flow]]) -> list[Problem]:
    """Everything that is wrong with these flows, each by itself and all together."""
    declared = list(dict.fromkeys(classes))
    together = (
        *_repeated(declared),
        *versions.places_in_newer(declared),
        *children.run_what_is_there(declared),
        *circles.circles(declared),
    )
    return [*(found for cls in declared for found in problems(cls.definition)), *together]


def _unreadable(view: View, node: str, fault: str) -> Problem:
    hint = "Look at the options of this node: routes are names of nodes, as text."
    return view.problem("E099", f"Node {node!r} cannot say where it leads: {fault}", hint, node)


def _safely(rule: Rule, view: View) -> list[Problem]:
    try:
        return list(rule(view))
    except Exception as fault:  # noqa: BLE001 - `check` must go on: one odd declaration hides no other problem
        message = f"The flow cannot be checked ({rule.__name__}): {type(fault).__name__}: {fault}"
        return [view.problem("E099", message, "Look at the values of its options; they are not what a flow is made of.")]


def _repeated(declared: list[type[Flow]]) -> Iterator[Problem]:
    """One name and version stands for one graph; the same class loaded twice is the same graph."""
    places: dict[tuple[object, object], str] = {}
    for cls in declared:
        definition = cls.definition
        first = places.setdefault((definition.name, definition.version), definition.where)
        if first != definition.where:
            message = f"Flow {definition.name!r} version {definition.version} is also declared as {first}."
            yield problem("E026", definition.where, message, "Raise Meta.version of the newer one, or set another Meta.name.")


__all__ = ["CATALOGUE", "PREFIX", "RULES", "Problem", "Rule", "View", "problem", "problems", "problems_of_all"]
