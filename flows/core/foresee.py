"""What would become of a live workflow under another definition: looked at before a deploy, from what is recorded of it.

fingerprint   the same version in another shape: at its next wake-up the gate would ask for a migration
migration     the declared function for its version fails, or names no node of the new definition
node          where it is now does not exist there
path          the way it has come could not have been gone there (only where no migration takes it over)
wait          what it waits for would not be waited for there, or under another key
activity      the work that is open is no activity there, or a step that is gone
outside       a function of the new definition is not pure
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from flows.core.course import BESIDE, Course
from flows.core.definition import Definition
from flows.core.history import Waited
from flows.core.moves import Park
from flows.core.nodes.activity import Activity
from flows.core.nodes.base import Node
from flows.core.nodes.pipeline import Pipeline
from flows.core.state import ActivityState, State


class Problem(NamedTuple):
    """One reason why a workflow would break, and what it is, in words."""

    what: str
    why: str


def now(course: Course) -> State:
    """The state of a workflow whose log was followed to its end."""
    last = course.history.log[-1]
    state = course.state(last._replace(seq=last.seq + 1, trigger="", ref=""), closing=False)
    newest = sorted(course.history.calendars.values(), key=lambda one: one.version)
    return replace(state, calendars={one.name: one for one in newest})


def pending(course: Course, definition: Definition, node: str) -> Iterator[Problem]:
    """What of a workflow at `node` the definition does not know: the node, its open wait, its open activity."""
    found = definition.nodes.get(node)
    if found is None:
        yield Problem("node", f"it is at {node}, which is not in {_name(definition)}")
        return
    if node != course.node:
        return  # it is taken to another node, and enters that one
    if course.wait is not None and course.wait.kind not in BESIDE:
        yield from _wait(course, course.wait, found, definition)
    if course.activity is not None:
        yield from _activity(course.activity, found, definition)


def _wait(course: Course, wait: Waited, node: Node, definition: Definition) -> Iterator[Problem]:
    if node.kind != wait.kind:
        yield Problem("wait", f"it waits at {node.name} for {_article(wait.kind)}; there that is {_article(node.kind)}")
        return
    if not wait.event_type:
        return
    try:
        move = node.waiting(now(course))
    except Exception as error:  # noqa: BLE001 - author code: whatever it raises is what would happen there
        yield Problem("wait", f"the key of {node.name} raises {type(error).__name__}: {error}"[:300])
        return
    recorded = (wait.event_type, wait.key)
    wanted = (move.event_type, move.keys[0] if move.keys else "") if isinstance(move, Park) else None
    if wanted != recorded:
        listed = " ".join(wanted) if wanted else "no event"
        yield Problem("wait", f"it waits at {node.name} for {' '.join(recorded)}; {_name(definition)} would wait for {listed}")


def _activity(activity: ActivityState, node: Node, definition: Definition) -> Iterator[Problem]:
    if not isinstance(node, Activity):
        yield Problem("activity", f"its activity {node.name} is open; in {_name(definition)} that is {_article(node.kind)}")
        return
    steps = [step.name for step in node.steps] if isinstance(node, Pipeline) else [""]
    if activity.step not in steps:
        open_one = f"step {activity.step} of {node.name}" if activity.step else node.name
        yield Problem("activity", f"{open_one} is open, and {_name(definition)} has no such step")


def _name(definition: Definition) -> str:
    return f"{definition.name}@{definition.version}"


def _article(kind: str) -> str:
    return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"
