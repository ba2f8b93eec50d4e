"""Before a deploy: which recorded workflows of a flow would break under another definition of it. Nothing is changed.

Read and held like a replay (`flows.services.replay`). Where the other definition declares how it takes workflows over from a version, that
decides; else the recorded way must be one that the other definition goes, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flows import registry
from flows.core import versions
from flows.core.course import Course
from flows.core.definition import Definition, Flow
from flows.core.errors import CannotMigrate
from flows.core.foresee import Problem, now, pending
from flows.core.history import History
from flows.core.protocol import TERMINAL
from flows.services import identify
from flows.services.recorded import Unreadable
from flows.services.replay import each, run, said
from flows.services.untouched import Touched, Untouched, called


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
        who = (history.id, history.flow, history.version, history.key)
        try:
            problems = tuple(_problems(history, flow, held))
        except Exception as error:  # noqa: BLE001 - a record that was written by hand may have any shape, and the others are still asked about
            return Forecast(*who, unknown=f"its record cannot be followed: {said(error)}")
        return Forecast(*who, history.row["status"], history.row["node"], problems)

    for found in each(workflows, one, flow=flow.definition.name, live=live, using=alias):
        if isinstance(found, Unreadable):
            yield Forecast(found.id, found.flow, found.version, found.key, unknown=found.problem)
        else:
            yield found


def taking_over(flow: type[Flow], version: int) -> list[Definition]:
    """The versions through which a run of that version would come to `flow`, by their `Meta.migrate_from`; empty if there is no way."""
    definition = flow.definition
    loaded = {**registry.known().versions(definition.name), definition.version: definition}
    return versions.route(loaded, version, definition.version) if version != definition.version else []


def _problems(history: History, flow: type[Flow], held: Untouched) -> Iterator[Problem]:
    definition = flow.definition
    course = Course(history)
    for row in history.log:
        course.follow(row)
    if not history.log:
        yield Problem("path", "it has no log")
        return
    if course.version != history.version:
        raise ValueError(f"the row says version {history.version}, the log came to {course.version}")
    if steps := taking_over(flow, history.version):
        yield from _taken_over(course, definition, steps)
        return
    if history.version == definition.version and history.fingerprint != definition.fingerprint:
        yield Problem(
            "fingerprint", f"version {history.version} was started as {history.fingerprint} and is {definition.fingerprint} now"
        )
    if history.row["status"] not in TERMINAL:
        yield from _pending(course, definition, course.node)
    gone = run(history, definition, held, strict=False)
    if gone.drift is not None:
        yield Problem("path", str(gone.drift))


def _taken_over(course: Course, definition: Definition, steps: Sequence[Definition]) -> Iterator[Problem]:
    try:
        walked = called(versions.walk, steps, now(course))
    except Touched as touched:
        yield Problem("migration", str(touched))
    except CannotMigrate as no:
        yield Problem("migration", str(no)[:300])
    else:
        yield from _pending(course, definition, walked.node)


def _pending(course: Course, definition: Definition, node: str) -> Iterator[Problem]:
    try:
        yield from called(lambda: list(pending(course, definition, node)))
    except Touched as touched:
        yield Problem("outside", str(touched))
