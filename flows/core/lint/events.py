"""Rules about events: what a wait for several needs can come, positions stand somewhere, and what an event begins has a user and a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from flows.core import payload
from flows.core.events import LARGEST, EventType, Order, StartedBy
from flows.core.lint.options import function_problems
from flows.core.lint.problem import Problem, problem
from flows.core.lint.view import View
from flows.core.nodes import On, Wait
from flows.core.nodes.several import MAX_PARTS
from flows.core.spans import LONGEST

WRITE = 'Write Wait(any=[On("data.released", key=…), On("doc.ready", key=…)], need=1, deadline=…), or all=[…].'
WRITE_TYPE = 'Write EventType("order.updated", order="seq", policy=Order.IN_ORDER, gap=minutes(10)).'
WRITE_BEGIN = 'Write started_by = StartedBy("order.created", key=function, input=function, user="ops").'


def parts_can_come(view: View) -> Iterator[Problem]:
    """A wait for several events says which, in one way, and needs no more than there are."""
    for name, node in view.nodes.items():
        if not isinstance(node, Wait):
            continue
        given = {option: view.option(name, option) for option in ("any", "all")}
        wrong = next((what for option, value in given.items() if (what := _no_events(option, value))), "")
        either, both = _sequence(given["any"]), _sequence(given["all"])
        if wrong:
            yield view.problem("E081", f"Node {name!r}: {wrong}.", WRITE, name)
        elif either and both:
            yield view.problem("E081", f"Node {name!r} has any= and all=.", WRITE, name)
        elif (either or both) and (view.option(name, "event") or view.option(name, "key")):
            message = f"Node {name!r} waits for one event, and for several."
            yield view.problem("E081", message, "Put the event and its key among the others, as On(…).", name)
        elif not (either or both) and view.option(name, "need") != 1:
            yield view.problem("E081", f"Node {name!r}: need= is said of any=, and there is none.", WRITE, name)
        else:
            yield from _counted(view, name, either, both)


def _counted(view: View, name: str, either: tuple[On, ...], both: tuple[On, ...]) -> Iterator[Problem]:
    need: Any = view.option(name, "need")
    fixed = all(not callable(one.key) for one in either)
    count = sum(len(one.key) if isinstance(one.key, list | tuple) else 1 for one in (*either, *both))
    if both and need != 1:
        yield view.problem("E081", f"Node {name!r}: all= needs all; need= says nothing there.", WRITE, name)
    if either and isinstance(need, int) and (need < 1 or (fixed and need > count)):
        yield view.problem("E081", f"Node {name!r} needs {need} events, and {count} may come.", WRITE, name)
    if count > MAX_PARTS:
        hint = "Wait for them in turns; the channels of one wait are locked at once."
        yield view.problem("E081", f"Node {name!r} waits for {count} events; {MAX_PARTS} are the most.", hint, name)
    names = [one.called for one in (*either, *both)]
    for twice in sorted({one for one in names if names.count(one) > 1}):
        hint = 'Name them apart: On("doc.ready", key=…, name="contract").'
        yield view.problem("E081", f"Node {name!r} has two events with the name {twice!r}.", hint, name)


def _sequence(given: Any) -> tuple[On, ...]:
    return tuple(given) if isinstance(given, list | tuple) else ()


def _no_events(option: str, given: Any) -> str:
    if not isinstance(given, list | tuple):
        return f"{option}= is {given!r:.60}, which is no list"
    listed: list[Any] = list(given)
    for one in listed:
        if not isinstance(one, On):
            return f"{option}= has {one!r:.60}, which is no On"
        name: Any = one.name  # a declared type does not bind an author
        if not payload.is_name(one.event) or not isinstance(name, str):
            return f"{option}= has an event without a type, {one!r:.80}"
        key: Any = one.key
        keys = key if isinstance(key, list | tuple) else (key,)
        if not callable(key) and not (keys and all(payload.is_name(given_key) for given_key in keys)):
            return f"{option}= has {one.called!r} without a key"
    return ""


def begins_for_somebody(view: View) -> Iterator[Problem]:
    """What an event begins has a type, a user who answers for it, and a key that names the run."""
    if not isinstance(view.definition.started_by, StartedBy):
        return  # E027, where it is not None
    by: Any = view.definition.started_by
    if not payload.is_name(by.event):
        yield view.problem("E083", f"Meta.started_by: the event type is {by.event!r:.60}.", WRITE_BEGIN)
    if not by.user:
        hint = 'Name the user who answers for the runs: user="ops". The event never says for whom they work.'
        yield view.problem("E083", "Meta.started_by names no user.", hint)
    if not by.key:
        hint = "Give key=, a pure function of the event: two events with one key begin one run."
        yield view.problem("E083", "Meta.started_by has no key.", hint)
    for option in ("key", "input"):
        if (function := getattr(by, option)) is not None:
            yield from function_problems(view, f"Meta.started_by, {option}", function, "", works=False)


def orders_are_orders(types: Iterable[EventType]) -> Iterator[Problem]:
    """The position of an event type stands somewhere, and its policy is one."""
    for one in types:
        for what in _wrong(one):
            yield problem("E082", f"event type {one.name}", f"The event type {one.name!r}: {what}.", WRITE_TYPE)


def _wrong(one: Any) -> Iterator[str]:
    if not isinstance(one.policy, Order):
        yield f"policy is {one.policy!r:.60}; it is one of Order.ANY, Order.IN_ORDER and Order.NEWEST"
    elif one.order is not None and one.policy is Order.ANY:
        yield "its order means nothing without a policy"
    path = isinstance(one.order, str) and all(one.order.split("."))
    if one.order is not None and not callable(one.order) and not path:
        yield f"order is {one.order!r:.60}, which is neither a path into the payload nor a function"
    if isinstance(one.first, bool) or not isinstance(one.first, int) or not 0 <= one.first <= LARGEST:
        yield f"first is {one.first!r:.60}, which is no position"
    if not isinstance(one.gap, timedelta) or not timedelta(0) < one.gap <= LONGEST:
        yield f"gap is {one.gap!r:.60}, which is no span that ends"
