"""Rules about effects and commitments: where they may stand, that their names lead somewhere, and that their functions can be called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flows.core.commitments import Commits
from flows.core.effects import PROBES, Effect, Servicing
from flows.core.lint.options import function_problems
from flows.core.lint.problem import Problem
from flows.core.lint.view import View
from flows.core.nodes import Activity, Decision, Job, Pipeline

WRITE = {
    "effect": "effect=Effect(reconcile=find_charge)",
    "effects": 'effects={"charge": Effect(reconcile=find_charge)}',
    "commits": 'commits=Commits("window", release=release_window)',
}


def stand_on_activities(view: View) -> Iterator[Problem]:
    """One call of one activity is an effect: a model's answer is none, and a pipeline has several calls."""
    for name, node in view.nodes.items():
        declared = [option for option in WRITE if view.option(name, option)]
        if isinstance(node, Decision | Pipeline) and not isinstance(node, Job) and declared:
            message = f"Node {name!r} is a {type(node).__name__} and has {declared[0]}=."
            yield view.problem("E033", message, "Put the call into an Activity of its own.", name)


def optional_leads_on(view: View) -> Iterator[Problem]:
    """What is dropped must have a way on: a Decision's next node is the model's choice."""
    for name, node in view.nodes.items():
        if isinstance(node, Decision) and view.option(name, "optional"):
            hint = "Put what the flow can do without into an Activity, which names its next node."
            yield view.problem("E037", f"Node {name!r} is a Decision and has optional=True.", hint, name)


def are_declared_rightly(view: View) -> Iterator[Problem]:
    """Effects are Effects and commitments are Commits, with functions that can be called."""
    for name, node in view.nodes.items():
        for option, example in WRITE.items() if isinstance(node, Activity) else ():
            value = view.option(name, option)
            if not _is_right(option, value):
                yield view.problem("E027", f"Node {name!r}: {option} is {value!r:.60}.", f"Write {example}.", name)
                continue
            for what, function, works in _functions(option, value):
                yield from function_problems(view, f"Node {name!r}, {what}", function, name, works=works)


def are_told_apart(view: View) -> Iterator[Problem]:
    """A call is its activity's only one, or one of several with a name each: beside a named one, the whole activity would be an effect, too."""
    for name, node in view.nodes.items():
        if _has_effects(node) and view.option(name, "effect") and view.option(name, "effects"):
            message = f"Node {name!r} has effect= and effects=: its call is one, or it has several."
            yield view.problem(
                "E038", message, "Keep effects= and give the first call a name there, too; or make two activities.", name
            )


def can_be_settled(view: View) -> Iterator[Problem]:
    """A doubt is settled by asking or by calling again; where neither is possible, a person is needed each time."""
    for name, node in view.nodes.items():
        for key, effect in _effects_of(view, name) if _has_effects(node) else ():
            of = f" of {key!r}" if key else ""
            if effect.reconcile is None and effect.probes is not PROBES:
                message = f"Node {name!r}: probes={of} is given without reconcile=, so there is nothing to ask."
                yield view.problem(
                    "W001", message, "Add reconcile=, a function that asks the provider; or leave probes= away.", name
                )
            if effect.reconcile is None and not effect.idempotent:
                which = f"its effect {key!r}" if key else "its effect"
                message = f"Node {name!r}: nobody can find out what became of {which}, so every doubt needs a person at once."
                hint = "Add reconcile=, or idempotent=True if the provider takes the same operation id twice for once; or silence this check."
                yield view.problem("W002", message, hint, name)


def _has_effects(node: object) -> bool:
    """Whether effects may stand there at all; else that is the mistake."""
    return isinstance(node, Job) or (isinstance(node, Activity) and not isinstance(node, Decision | Pipeline))


def _effects_of(view: View, name: str) -> Iterator[tuple[str, Effect]]:
    """(name, the effect) of those that are declared rightly; the node's own has no name."""
    own, named = view.option(name, "effect"), view.option(name, "effects")
    if isinstance(own, Effect):
        yield "", own
    if _is_right("effects", named):
        yield from named.items()


def author_functions(node: Activity) -> Iterator[tuple[str, Any]]:
    """(what it is, the function) of the effects and commitments of a node that are declared rightly."""
    for option in WRITE:
        value = getattr(node, option)
        if _is_right(option, value):
            yield from ((what, function) for what, function, _ in _functions(option, value))


def _is_right(option: str, value: Any) -> bool:
    if option == "effect":
        return value is None or isinstance(value, Effect)
    if option == "effects":
        return isinstance(value, Mapping) and all(_is_named(key, one) for key, one in value.items())
    return _readable(value)


def _is_named(key: object, effect: object) -> bool:
    return isinstance(key, str) and key != "" and "/" not in key and isinstance(effect, Effect)


def _functions(option: str, value: Any) -> Iterator[tuple[str, Any, bool]]:
    """(what it is, the function, whether it may do I/O) of everything that is given."""
    if option == "commits":
        for one in (value,) if isinstance(value, Commits) else value:
            yield from (
                (f"{word} of {one.name!r}", getattr(one, word), False) for word in ("reference", "terms") if getattr(one, word)
            )
            yield from _servicing(f"release of {one.name!r}", one.release)
        return
    for key, effect in value.items() if option == "effects" else [("", value)] if value else []:
        of = f" of {key!r}" if key else ""
        yield from (
            (f"{word}{of}", getattr(effect, word), works)
            for word, works in (("reconcile", True), ("request", False))
            if getattr(effect, word)
        )
        yield from _servicing(f"compensate{of}", effect.compensate)


def _servicing(what: str, given: Any) -> Iterator[tuple[str, Any, bool]]:
    if isinstance(given, Servicing):
        yield what, given.do, True
        if given.reconcile is not None:
            yield f"reconcile in {what}", given.reconcile, True
    elif given is not None:
        yield what, given, True


def commitments_are_sound(view: View) -> Iterator[Problem]:
    """A commitment is known by its name in the whole flow, what is fulfilled is begun somewhere, and its deadline preempts no node."""
    begun: dict[str, str] = {}
    for name, node in view.nodes.items():
        for one in node.commitments if isinstance(node, Activity) and _readable(view.option(name, "commits")) else ():
            first = begun.get(one.name)
            begun.setdefault(one.name, name)
            if first is not None:
                hint = "A commitment is fulfilled and looked for by its name: give each its own."
                yield view.problem("E034", f"Node {name!r}: the commitment {one.name!r} is also begun by {first!r}.", hint, name)
            if one.deadline is not None and one.deadline.target:
                message = f"Node {name!r}: the deadline of the commitment {one.name!r} leads to {one.deadline.target!r}."
                hint = "then=ESCALATE tells the accountable user, then=CANCEL cancels the workflow, which releases it; or RELEASE, BREACH."
                yield view.problem("E036", message, hint, name)
    for name in view.nodes:
        fulfils = view.option(name, "fulfils")
        if fulfils and fulfils not in begun:
            hint = (
                f"Begun are {', '.join(sorted(begun))}." if begun else 'No node begins one: commits=Commits("window", release=…).'
            )
            yield view.problem("E035", f"Node {name!r} fulfils {fulfils!r:.60}, which no node begins.", hint, name)


def _readable(commits: object) -> bool:
    return isinstance(commits, Commits) or (isinstance(commits, tuple) and all(isinstance(one, Commits) for one in commits))
