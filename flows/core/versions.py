"""From one version of a flow to a later one: which steps lead there, and where a run stands after them. Pure.

    class Meta:
        version = 3
        migrate_from = {2: {"test": "verify"}}      # node of version 2 → node of this version; nodes of one name need no entry
        migrate_from = {1: from_first}              # or a pure function of the run's State that answers Migrated(…)

A run of version 1 reaches version 3 by version 3's own step from 1, or by those of 2 and 3, one after another: the fewest steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from flows.core import payload
from flows.core.errors import CannotMigrate, DefinitionError, OutlastError
from flows.core.nodes.activity import Candidate, Decision, qualified
from flows.core.state import ActivityState, State

if TYPE_CHECKING:
    from flows.core.definition import Definition

#: `Meta.migrate`: a worker that takes such a run up migrates it first, though it still knows the old version.
AT_WAKE = "at_wake"
MAX_REASON = 300


@dataclass(frozen=True, slots=True)
class Migrated:
    """Where a run of an older version stands in this one; what a function of `Meta.migrate_from` answers.

    Args:
        node: the node of this version. results: results that the run shall have from now on, by node of this version; for a Decision
            a `Candidate`. note: a sentence for the run's log.
    """

    node: str
    results: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        node: Any = self.node
        results: Any = self.results
        if not isinstance(node, str):
            raise DefinitionError(f"Migrated(node) names a node as text, got {node!r:.60}.")
        if not isinstance(results, Mapping):
            raise DefinitionError(f"Migrated(results=…) takes results by node, got {results!r:.60}.")


Step = Callable[[State], "Migrated | None"] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Walked:
    """The end of all steps: the node, the results that they gave (by node), what the steps said, and the versions passed."""

    node: str
    results: Mapping[str, Any]
    notes: tuple[str, ...]
    versions: tuple[int, ...]


def route(definitions: Mapping[int, Definition], source: int, target: int) -> list[Definition]:
    """The versions of a flow whose steps lead from `source` to `target`, the fewest there are; empty if none do.

    Args:
        definitions: those that are loaded, by version. The source need not be one of them.
    """
    ways: dict[int, list[Definition]] = {source: []}
    waiting = [source]
    while waiting and target not in ways:
        at = waiting.pop(0)
        for version in sorted(definitions, reverse=True):
            if version not in ways and version <= target and at in _steps(definitions[version]):
                ways[version] = [*ways[at], definitions[version]]
                waiting.append(version)
    return ways.get(target, [])


def walk(steps: Sequence[Definition], state: State) -> Walked:
    """Where this run stands after these steps.

    Raises:
        CannotMigrate: a function says so, or answers what cannot be. Whatever else a function raises is one, too, with it as cause.
    """
    given: dict[str, Any] = {}
    notes: list[str] = []
    for definition in steps:
        migrated = _one(definition, state)
        results = {name: _result(definition, state, name, value) for name, value in migrated.results.items()}
        given |= results
        if migrated.note:
            notes.append(str(migrated.note)[:MAX_REASON])
        state = replace(
            state,
            version=definition.version,
            node=migrated.node,
            results=MappingProxyType({**state.results, **results}),
        )
    return Walked(state.node, MappingProxyType(given), tuple(notes), tuple(one.version for one in steps))


def sources(definition: Definition) -> list[int]:
    """The older versions from which a definition has a step, leaving out what is declared wrongly."""
    keys: list[Any] = list(_steps(definition))
    return [source for source in keys if isinstance(source, int)]


def _steps(definition: Definition) -> Mapping[int, Step]:
    found: Any = definition.migrate_from
    return found if isinstance(found, Mapping) else {}


def _one(definition: Definition, state: State) -> Migrated:
    step: Any = _steps(definition)[state.version]
    if isinstance(step, Mapping):
        return _mapped(definition, state, step)
    try:
        answer: object = step(state)
    except CannotMigrate:
        raise
    except Exception as fault:
        raise CannotMigrate(f"{qualified(step)} raised {type(fault).__name__}") from fault
    if answer is None:
        raise CannotMigrate(f"{qualified(step)} has no place for it")
    if not isinstance(answer, Migrated):
        raise CannotMigrate(f"{qualified(step)} answered {answer!r:.80}, which is not Migrated(node, results, note)")
    if answer.node not in definition.nodes:
        raise CannotMigrate(f"{qualified(step)} answered node {answer.node!r}, which version {definition.version} does not have")
    return answer


def _mapped(definition: Definition, state: State, step: Mapping[str, str]) -> Migrated:
    node = step.get(state.node, state.node)
    if node not in definition.nodes:
        raise CannotMigrate(
            f"version {definition.version} has no node {node!r}, and its migrate_from leads {state.node!r} nowhere else"
        )
    return Migrated(node)


def _result(definition: Definition, state: State, name: str, value: Any) -> Any:
    """A result as it is recorded: of a Decision, the artifact of the candidate."""
    node = definition.nodes.get(name)
    if node is None:
        raise CannotMigrate(f"a result for node {name!r}, which version {definition.version} does not have")
    try:
        if isinstance(node, Decision) and isinstance(value, Candidate):
            visit = max(1, state.visits.get(name, 1))
            value = node.accept(value, replace(state, activity=ActivityState(0, name, "", visit, 0, 0)))
        payload.text(value, f"the result of {name}")
    except OutlastError as fault:
        raise CannotMigrate(f"the result for node {name!r} cannot be kept: {fault}") from fault
    except Exception as fault:
        raise CannotMigrate(f"the schema of node {name!r} raised {type(fault).__name__}") from fault
    return value
