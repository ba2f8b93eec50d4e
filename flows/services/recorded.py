"""From the rows of many workflows to one frozen history each: what replay gets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID

from flows import registry
from flows.core import fold, payload
from flows.core.errors import PayloadError
from flows.core.history import Asked, History, Judged, Logged, Observed, Passed, Tried, Verified, Visited, Waited
from flows.services import calendars
from flows.services.owned import evidence_of
from flows.store import history as store
from flows.store.sql import loads

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A workflow whose record cannot be read here, and why."""

    id: str
    flow: str
    version: int
    key: str | None
    problem: str


def histories(ids: Sequence[UUID], using: str) -> Iterator[History | Unreadable]:
    """The recorded histories of these workflows, in order of id. Call it inside `flows.store.history.snapshot`."""
    workflows = store.workflows(ids, using)
    asked = _asked(workflows, using)
    known = calendars.versions(using)
    releases = store.releases(using) if any(row[7] for row in workflows) else frozenset()
    reads = (store.log, store.activities, store.attempts, store.waits, store.deadlines)
    log, activities, attempts, waits, deadlines = (_by_workflow(read(ids, using)) for read in reads)
    looks = (store.verdicts, store.observations, store.verifications)
    verdicts, observations, verifications = (_by_workflow(read(ids, using)) for read in looks)
    for row in workflows:
        row_id = row[0]
        try:
            yield History(
                id=str(row_id),
                flow=row[1],
                version=row[2],
                fingerprint=row[3],
                key=row[4],
                input=_value(row[5]) or {},
                result=_value(row[6]),
                release=row[7],
                releases=releases,
                calendars=known,
                row=dict(zip(fold.FIELDS, row[8:], strict=True)),
                log=tuple(_logged(one) for one in log[row_id]),
                visits={one[1]: Visited._make((*one[1:6], _value(one[6]))) for one in activities[row_id]},
                attempts={(one[1], one[2]): Tried(*one[3:]) for one in attempts[row_id]},
                waits=tuple(_waited(one) for one in waits[row_id]),
                asked=tuple(asked.get(row_id, ())),
                deadlines=tuple(Passed._make(one[1:]) for one in deadlines[row_id]),
                judged=_judged(verdicts[row_id]),
                observed=tuple(Observed._make(one[1:]) for one in observations[row_id]),
                verified=tuple(Verified._make((*one[1:9], loads(one[9]))) for one in verifications[row_id]),
            )
        except PayloadError as error:
            yield Unreadable(str(row_id), row[1], row[2], row[4], str(error))
        except Exception as error:  # noqa: BLE001 - a row that was written by hand may have any shape, and the others are still read
            yield Unreadable(str(row_id), row[1], row[2], row[4], f"{type(error).__name__}: {error}"[:300])


def _asked(workflows: Sequence[Sequence[Any]], using: str) -> Mapping[Any, Sequence[Asked]]:
    """What people were asked, of the workflows whose flow has a gate that asks about it; the plane that asked them says it."""
    plane = registry.wait_plane("approval")
    if plane is None:
        return {}
    definitions = {(row[1], row[2]) for row in workflows}
    asking = {key for key in definitions if (found := registry.definition(*key)) is None or found.asks_people}
    wanted = [row[0] for row in workflows if (row[1], row[2]) in asking]
    return plane.asked(using, wanted) if wanted else {}


def _by_workflow(rows: Sequence[tuple[Any, ...]]) -> Mapping[Any, list[tuple[Any, ...]]]:
    found: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row)
    return found


def _logged(row: Sequence[Any]) -> Logged:
    note = loads(row[15])
    return Logged._make((*row[1:15], note if isinstance(note, dict) else _NOTHING, row[16]))


def _judged(rows: Sequence[tuple[Any, ...]]) -> Mapping[int, tuple[Judged, ...]]:
    found: dict[int, tuple[Judged, ...]] = {}
    for row in rows:
        one = Judged._make((*row[1:6], tuple(map(tuple, loads(row[6]))), row[7]))
        found[one.version] = (*found.get(one.version, ()), one)
    return found


def _waited(row: Sequence[Any]) -> Waited:
    return Waited._make((*row[1:9], evidence_of(loads(row[9])), _value(row[10]), row[11], row[12]))


def _value(stored: Any) -> Any:
    found = loads(stored)
    if payload.is_erased(found):
        raise PayloadError("a stored value", "was erased (flows erase), so nothing can be decided by it again")
    return payload.decode(found)
