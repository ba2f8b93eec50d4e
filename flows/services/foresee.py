"""Before a deploy: which recorded workflows of a flow would break under another definition of it. Nothing is changed.

Read and held like a replay (`flows.services.replay`). Where the other definition declares how it takes workflows over from a version, that
decides; else the recorded way must be one that the other definition goes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flows.core.course import Course
from flows.core.definition import Flow
from flows.core.foresee import Problem, now, pending
from flows.core.history import History
from flows.core.protocol import TERMINAL
from flows.core.state import State
from flows.services import identify
from flows.services.recorded import Unreadable
from flows.services.replay import each, run
from flows.services.untouched import Touched, Untouched


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would become of one workflow. `unknown`: why that cannot be said."""

    id: str
    flow: str
    version: int
    key: str | None
    status: str = ""
    node: str = ""
    problems: tuple[Problem, ...] = ()
    unknown: str = ""

    def __bool__(self) -> bool:
        return not self.problems and not self.unknown


def foresee(
    flow: type[Flow], workflows: Sequence[Any] | None = None, *, live: bool = True, using: str | None = None
) -> Iterator[Forecast]:
    """What would become of workflows of this flow under `flow`; one answer each, in order of id.

    Args:
        workflows: these; None: all of the flow's name. live: those that have not ended only.
    Raises:
        UnknownWorkflow: one of `workflows` does not exist. NotAlone: it was called inside a transaction.
    """
    alias = identify.alias(using)

    def one(history: History, held: Untouched) -> Forecast:
        problems = tuple(_problems(history, flow, held))
        row = history.row
        return Forecast(history.id, history.flow, history.version, history.key, row["status"], row["node"], problems)

    for found in each(workflows, one, flow=flow.definition.name, live=live, using=alias):
        if isinstance(found, Unreadable):
            yield Forecast(found.id, found.flow, found.version, found.key, unknown=found.problem)
        else:
            yield found


def taking_over(flow: type[Flow], version: int) -> Callable[[State], Any] | None:
    """The function by which `flow` takes over workflows of that version (`Meta.migrate_from = {1: fn}`), if it declares one.

    The one place where this is looked up. What the function answers has the node to go on at as `node`.
    """
    declared = getattr(flow.definition, "migrate_from", None)
    if declared is None:
        declared = getattr(getattr(flow, "Meta", None), "migrate_from", None)
    found: Callable[[State], Any] | None = (declared or {}).get(version)
    return found


def _problems(history: History, flow: type[Flow], held: Untouched) -> Iterator[Problem]:
    definition = flow.definition
    course = Course(history)
    for row in history.log:
        course.follow(row)
    if not history.log:
        yield Problem("path", "it has no log")
        return
    function = taking_over(flow, history.version) if history.version != definition.version else None
    if function is not None:
        yield from _taken_over(course, flow, function)
        return
    if history.version == definition.version and history.fingerprint != definition.fingerprint:
        yield Problem(
            "fingerprint", f"version {history.version} was started as {history.fingerprint} and is {definition.fingerprint} now"
        )
    if history.row["status"] not in TERMINAL:
        yield from pending(course, definition, course.node)
    gone = run(history, definition, held, strict=False)
    if gone.drift is not None:
        yield Problem("path", str(gone.drift))


def _taken_over(course: Course, flow: type[Flow], function: Callable[[State], Any]) -> Iterator[Problem]:
    try:
        migrated = function(now(course))
        node = migrated.node
    except Touched as touched:
        yield Problem("migration", str(touched))
    except Exception as error:  # noqa: BLE001 - author code: whatever it raises is what would happen there
        yield Problem(
            "migration", f"the function for version {course.history.version} raises {type(error).__name__}: {error}"[:300]
        )
    else:
        if node is None:
            node = course.node
        if node not in flow.definition.nodes:
            yield Problem(
                "migration", f"it would go on at {node}, which is not in {flow.definition.name}@{flow.definition.version}"
            )
        else:
            yield from pending(course, flow.definition, node)
