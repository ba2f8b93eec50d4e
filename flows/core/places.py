"""Which entry of a journal stands for a call that the code makes now: the places of one visit. Pure.

    on record, the same kind, name and arguments      that one; of equal ones the first that nobody asked for yet
    a model or a unit at the place reached            the next one on record, if kind and name are its, whatever the prompt is now
    lost, or failed and to be made anew               none, and the code has taken no other way: the call is made
    else                                              none; what is on record behind this place is set aside: the code has taken another way

An answer whose candidate was malformed does not stand: the model is asked anew (`behind_answer`).
Inside another call (`outer`) a call is known by what it asks of whom, and by nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flows.core import canonical
from flows.core.turns import Entry, EntryKind, EntryStatus


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call stands in the code. `key`: what tells it from all others of the visit. `digest`: by which it is found on record."""

    kind: EntryKind
    name: str
    digest: str
    key: str
    nested: bool


class Places:
    """The entries of a visit, and which of them this attempt has asked for."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = {one.number: one for one in entries}
        self._gone: set[int] = set()
        self._asked: Counter[tuple[str, str, str]] = Counter()
        self._order: list[int] = []

    @property
    def reached(self) -> tuple[Entry, ...]:
        """What was asked for so far, in the order of asking; not what is inside another call."""
        return tuple(self.entries[number] for number in self._order)

    def place(self, kind: EntryKind, name: str, digest: str, outer: str = "") -> Place:
        """The place of the next call; which of equal ones it is counts, so each is asked for once and in order."""
        asks = "" if kind is EntryKind.MODEL and not outer else digest
        which = (kind.value, name, f"{outer}/{asks}")
        self._asked[which] += 1
        key = canonical.digest([*which, self._asked[which]], "the place of a call")
        found_by = canonical.digest([outer, digest], "the place of a call") if outer else digest
        return Place(kind, name, found_by, key, bool(outer))

    def find(self, place: Place) -> tuple[Entry | None, Sequence[Entry]]:
        """The entry that stands for the call, or None; and those that are set aside."""
        left = [one for number, one in sorted(self.entries.items()) if number not in self._gone]
        free = [one for one in left if one.usable]
        named = [one for one in left if (one.kind, one.name) == (place.kind, place.name)]
        same = next((one for one in named if one.usable and one.request_hash == place.digest), None)
        if same is not None or place.nested:
            return same, ()
        free = [one for one in free if not one.within]
        if place.kind is not EntryKind.TOOL and free and free[0] in named:
            return free[0], ()
        before = (one for one in named if not one.usable and one.status is not EntryStatus.STALE)
        again = next((one for one in before if place.kind is not EntryKind.TOOL or one.request_hash == place.digest), None)
        if again is not None:
            self._gone.add(again.number)
            return None, ()
        return None, free

    def behind_answer(self, attempt: int) -> Sequence[Entry]:
        """What is set aside where this attempt was the last one whose candidate was malformed: the answer that it came of, so that the model is
        asked anew. Nothing, where it was asked anew since.
        """
        asked = [one for number, one in sorted(self.entries.items()) if one.kind is EntryKind.MODEL and not one.within]
        if not asked or asked[-1].attempt > attempt or asked[-1].status is not EntryStatus.DONE:
            return ()
        return [one for number, one in sorted(self.entries.items()) if number >= asked[-1].number and one.usable]

    def take(self, entry: Entry) -> None:
        """This entry stands for a call of this attempt."""
        self.entries[entry.number] = entry
        self._gone.add(entry.number)
        if not entry.within:
            self._order.append(entry.number)

    def change(self, entry: Entry) -> None:
        """What became of an entry."""
        self.entries[entry.number] = entry
