"""What other rooms plug in: flow classes by name and version, what else is declared beside them, the planes that own a kind of wait, what the
clock looks for, and the outboxes of what people are told.

A plane (approvals is one) opens and withdraws the rows behind its waits inside the arrow's own transaction, tells the gate its facts,
and uses up what a gate asked for. That is the whole list of hooks; there are no hidden ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Protocol

from flows.core import declared as declarations
from flows.core import definition as definitions
from flows.core import holds, versions
from flows.core.belonging import Belonging, Span
from flows.core.declared import Kind
from flows.core.definition import Definition, Flow
from flows.core.errors import DefinitionError
from flows.core.events import StartedBy
from flows.core.history import Asked
from flows.core.metrics import Sample
from flows.core.misuse import UnknownFlow
from flows.core.moves import Park
from flows.core.nodes.activity import Activity
from flows.core.nodes.base import Node
from flows.core.state import ApprovalFact


def flow(name: str, version: int | None = None) -> type[Flow]:
    """The flow class of that name; the newest version unless one is given.

    Raises:
        UnknownFlow: none is registered in this process.
    """
    found = known()
    given: Any = version
    if given is not None and not isinstance(given, int):
        raise UnknownFlow(f"{name}@{given!r:.60}", [f"{n}@{v}" for n, v in found])
    if version is not None and (name, version) in found:
        return found[name, version]
    versions = sorted(v for n, v in found if n == name)
    if version is not None or not versions:
        raise UnknownFlow(name if version is None else f"{name}@{version}", [f"{n}@{v}" for n, v in found])
    return found[name, versions[-1]]


def definition(name: str, version: int) -> Definition | None:
    """The definition of that name and version, or None if this process does not have it."""
    found = known().get((name, version))
    return found.definition if found else None


def node(flow_name: str, version: int, name: str) -> Node | None:
    """The node of that name, or None if this process does not have the flow (or the flow no such node)."""
    found = definition(flow_name, version)
    return found.nodes.get(name) if found is not None else None


def activity(flow_name: str, version: int, name: str) -> Activity | None:
    """The same where it is an activity."""
    found = node(flow_name, version, name)
    return found if isinstance(found, Activity) else None


class Known(dict[tuple[str, int], "type[Flow]"]):
    """(name, version) → flow class; and which steps a run of a version goes when a worker takes it up, worked out once."""

    @cached_property
    def at_wake(self) -> dict[tuple[str, int], tuple[Definition, ...]]:
        """Of each version that some loaded one migrates from: the steps, empty where its runs go on as they are."""
        sources = {(cls.definition.name, source) for cls in self.values() for source in versions.sources(cls.definition)}
        return {pair: self._at_wake(*pair) for pair in sources}

    def _at_wake(self, name: str, source: int) -> tuple[Definition, ...]:
        loaded = self.versions(name)
        wanted = (v for v in sorted(loaded, reverse=True) if source not in loaded or loaded[v].migrate == versions.AT_WAKE)
        return next((tuple(steps) for v in wanted if v > source and (steps := versions.route(loaded, source, v))), ())

    @cached_property
    def event_types(self) -> frozenset[str]:
        """The types of events for which some loaded flow waits, or that begin one."""
        types = {one for cls in self.values() for one in event_types_of(cls.definition)}
        return frozenset({*types, *self.started_by})

    @cached_property
    def started_by(self) -> dict[str, tuple[tuple[type[Flow], StartedBy], ...]]:
        """Event type → what begins with it: the newest version of each such flow, and how."""
        newest = {name: self[name, max(loaded)] for name, _ in self if (loaded := self.versions(name))}
        found: dict[str, tuple[tuple[type[Flow], StartedBy], ...]] = {}
        for cls in newest.values():
            by = cls.definition.started_by
            if isinstance(by, StartedBy):
                found[by.event] = (*found.get(by.event, ()), (cls, by))
        return found

    @cached_property
    def needing(self) -> list[str]:
        """What needs which dependency, as `flows.core.holds.lines` says it."""
        return [
            line for (name, version), cls in self.items() for line in holds.lines(name, version, cls.definition.nodes.items())
        ]

    def versions(self, name: str) -> dict[int, Definition]:
        """The loaded versions of a flow."""
        return {cls.definition.version: cls.definition for (n, v), cls in self.items() if n == name and isinstance(v, int)}


def event_types_of(definition: Definition) -> frozenset[str]:
    """The types of events for which the nodes of a definition wait."""
    found: set[str] = set()
    for node in definition.nodes.values():
        given = [getattr(node, "event", ""), *(one.event for one in getattr(node, "several", ()))]
        found |= {one for one in given if isinstance(one, str) and one}
    return frozenset(found)


def known() -> Known:
    """(name, version) → flow class, of everything declared in this process."""
    return _lookup(len(definitions.DECLARED))


@lru_cache(maxsize=1)
def _lookup(count: int) -> Known:
    return Known({(cls.definition.name, cls.definition.version): cls for cls in definitions.DECLARED[:count]})


def declared(kind: type[Kind]) -> Mapping[str, Kind]:
    """Name → thing, of all that are declared of a kind beside the flows (`flows.core.declared`)."""
    return declarations.of(kind)


def steps(name: str, source: int, target: int | None = None) -> tuple[Definition, ...]:
    """The versions through which a run of `source` gets to `target`, or to the newest that can be reached; empty if there is no way.

    Raises:
        UnknownFlow: the target is not registered in this process.
    """
    if target is not None:
        flow(name, target)
    loaded = known().versions(name)
    targets = sorted((v for v in loaded if v > source), reverse=True) if target is None else [target]
    return next((tuple(found) for v in targets if (found := versions.route(loaded, source, v))), ())


def at_wake(name: str, version: int) -> tuple[Definition, ...]:
    """The steps that a worker of this process lets a run of that version go before it works on it; empty: none."""
    return known().at_wake.get((name, version), ())


def taken_up(offered: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """What a worker that offers these definitions takes from the queue: those, and runs of older versions that it would migrate to them."""
    older = [pair for pair, way in known().at_wake.items() if way and (pair[0], way[-1].version) in offered]
    return [*offered, *(pair for pair in older if pair not in offered)]


def function(reference: Callable[..., Any] | str) -> Callable[..., Any]:
    """The callable behind a function or its dotted path.

    Raises:
        DefinitionError: the path leads nowhere.
    """
    return _imported(reference) if isinstance(reference, str) else reference


@lru_cache(maxsize=1024)
def _imported(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise DefinitionError(f"The function {path!r} cannot be imported: {error}") from error
    if not callable(found):
        raise DefinitionError(f"{path!r} is not a function.")
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Opening:
    """What a plane needs to know when one of its waits is opened. `activity_seq`: of the activity that it stands beside, if any. `answer`: what
    the plane has answered at once.
    """

    wait_id: int
    workflow_id: Any
    intent_id: Any
    intent_version: int
    epoch: int
    policy_version: str
    user_id: Any
    visit: int
    park: Park
    deadline_at: datetime | None
    activity_seq: int | None = None
    answer: Mapping[str, Any] | None = None


class WaitPlane(Protocol):
    """The room that owns a kind of wait, or several."""

    def lacking(self, using: str, workflow_id: Any, park: Park) -> str:
        """Why a wait of this kind must not be opened, because nobody could end it; "": it may. In the same transaction."""

    def at_once(self, using: str, workflow_id: Any, park: Park) -> Mapping[str, Any] | None:
        """The evidence with which a wait of this kind that is about to be opened is answered; None: it has to wait. In the same transaction."""

    def opened(self, using: str, opening: Opening) -> None:
        """A wait of this kind was opened; write what belongs to it, in the same transaction."""

    def closed(self, using: str, wait_ids: Sequence[int], how: str) -> None:
        """Waits of this kind were closed: satisfied or expired; close what belongs to them, in the same transaction."""

    def due(self, using: str, moments: Sequence[tuple[int, str, str]]) -> None:
        """Moments (wait, kind of timer, name) have come that concern the people behind open waits of this kind; in the sweep's transaction."""

    def ended(self, using: str, workflow_ids: Sequence[Any]) -> None:
        """These workflows were cancelled or superseded; nothing of them is open or usable any more. In the same transaction."""

    def asks_the_same(self, using: str, wait_id: int, park: Park) -> bool:
        """Whether entering the node anew would ask exactly what the open wait asks."""

    def migrated(self, using: str, workflow_id: Any, nodes: Mapping[str, Node], kept: int | None) -> int:
        """The workflow goes on in a new generation, under a definition with these nodes of its kinds; the wait `kept` goes over.

        What still holds there is bound to the new generation, everything else ends; how many open questions were withdrawn. In the same
        transaction.
        """

    def facts(self, using: str, workflow_id: Any, nodes: Sequence[str]) -> Mapping[str, ApprovalFact | None]:
        """What the gate must know about the newest request of each of these nodes."""

    def asked(self, using: str, workflow_ids: Sequence[Any]) -> Mapping[Any, Sequence[Asked]]:
        """All that was ever asked for these workflows, by workflow, in the order in which it was asked; for replay."""

    def use(self, using: str, request_id: str, activity_seq: int) -> bool:
        """Use the approval up for that activity, in the arrow's transaction; False if it is not to be had any more."""


_planes: dict[str, WaitPlane] = {}


def register_wait_plane(kind: str, plane: WaitPlane) -> None:
    """Let `plane` own waits of that kind; called from `AppConfig.ready`."""
    _planes[kind] = plane


def wait_plane(kind: str) -> WaitPlane | None:
    """The plane that owns that kind of wait, if any."""
    return _planes.get(kind)


def migrated(workflow_id: Any, nodes: Mapping[str, Node], kept: int | None, using: str) -> int:
    """Tell every plane that a workflow goes on under another definition, in the arrow's own transaction; how many questions were withdrawn."""
    found = 0
    for plane in set(_planes.values()):
        own = {name: node for name, node in nodes.items() if _planes.get(node.kind) is plane}
        found += plane.migrated(using, workflow_id, own, kept)
    return found


def due(moments: Sequence[tuple[str, tuple[int, str, str]]], using: str) -> None:
    """Tell each plane of the moments (kind of wait, (wait, kind of timer, name)) that concern the people behind its waits."""
    for kind, plane in _planes.items():
        own = [moment for of, moment in moments if of == kind]
        if own:
            plane.due(using, own)


def ended(workflow_ids: Sequence[Any], using: str) -> None:
    """Tell every plane that these workflows were cancelled or superseded, in the arrow's own transaction."""
    for plane in set(_planes.values()):
        plane.ended(using, workflow_ids)


@dataclass(frozen=True, slots=True)
class Watch:
    """Something that the clock looks for, and what is done about it.

    Attributes:
        name: of letters, figures and dashes; a short look is asked for by it (`flows.dispatch.look_soon`).
        exists: an SQL expression without parameters, true where there is something to do: cheap, for it joins the one statement of a tick.
        run: called with the database alias: in transactions of its own, on at most SWEEP_BATCH rows. Two at once are harmless.
    """

    name: str
    exists: str
    run: Callable[[str], object]


_watches: dict[str, Watch] = {}


def register_watch(watch: Watch) -> None:
    """Have the clock look for this, too; called from `AppConfig.ready`."""
    _watches[watch.name] = watch


def watches() -> tuple[Watch, ...]:
    """All of them, in the order in which they were registered."""
    return tuple(_watches.values())


def watch(name: str) -> Watch | None:
    """The watch of that name, if this process has it."""
    return _watches.get(name)


#: Gives, for a database alias and the moment that it is there, samples for a monitoring system (`flows.core.metrics`): by one statement.
SampleSource = Callable[[str, datetime], Iterable[Sample]]

_sample_sources: dict[str, SampleSource] = {}


def register_samples(name: str, source: SampleSource) -> None:
    """Show these metrics, too; called from `AppConfig.ready`."""
    _sample_sources[name] = source


def sample_sources() -> tuple[SampleSource, ...]:
    """All of them, in the order in which they were registered."""
    return tuple(_sample_sources.values())


class Outbox(Protocol):
    """A table of what is owed to people, and its sender (`flows.services.outbox`)."""

    @property
    def table(self) -> str:
        """Its name; the clock looks for rows that are due there."""

    def send_owed(self, using: str, limit: int) -> int:
        """Send what is due; how many messages went out."""


_outboxes: dict[str, Outbox] = {}


def register_outbox(outbox: Outbox) -> None:
    """Have the clock look at this outbox; called from `AppConfig.ready`."""
    _outboxes[outbox.table] = outbox


def outboxes() -> tuple[Outbox, ...]:
    """All of them, in the order in which they were registered."""
    return tuple(_outboxes.values())


_belongings: dict[str, Belonging] = {}
_spans: list[Span] = []


def register_belongings(belongings: Sequence[Belonging], spans: Sequence[Span] = ()) -> None:
    """Have these rows archived, erased and deleted with their run, and those by their own age; called from `AppConfig.ready`.

    Whoever registers later is deleted first: its rows may hang on those of who was there before.
    """
    before = dict(_belongings)
    _belongings.clear()
    _belongings.update({one.table: one for one in belongings})
    _belongings.update({table: one for table, one in before.items() if table not in _belongings})
    _spans.extend(one for one in spans if one not in _spans)


def belongings() -> tuple[Belonging, ...]:
    """The tables of which rows belong to runs, in the order in which they are deleted."""
    return tuple(_belongings.values())


def spans() -> tuple[Span, ...]:
    """The tables of which rows go by their own age."""
    return tuple(_spans)


Leaver = Callable[[str, Sequence[Any]], None]
_leavers: list[Leaver] = []


def register_leaver(leaver: Leaver) -> None:
    """Call this with (alias, workflows) before their values are erased or their rows deleted, in that transaction: for what lies elsewhere.

    What it removes outside the database it removes after the commit; called from `AppConfig.ready`.
    """
    if leaver not in _leavers:
        _leavers.append(leaver)


def leaving(workflow_ids: Sequence[Any], using: str) -> None:
    """The values of these workflows are about to go."""
    for leaver in _leavers:
        leaver(using, workflow_ids)
