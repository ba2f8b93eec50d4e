"""The attempt in which code runs now, as what it calls may need it: a guarded tool asks people, and makes its call as an effect.

The attempt is found through a context variable, so that a tool takes only its own arguments. Async code and `asyncio.to_thread` have it; a
thread pool of one's own gets it by `contextvars.copy_context().run`. Guard: whatever is begun here is guarded by the attempt's ownership.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connections

from flows.core.effects import TOOL
from flows.core.errors import DefinitionError
from flows.core.nodes.activity import Activity
from flows.core.state import State
from flows.services.authored import from_anywhere, transaction_of
from flows.services.effects import Call, Effects
from flows.services.owned import Owned
from flows.store import operations
from flows.store.sql import committing

_now: ContextVar[Calling | None] = ContextVar("outlast_calling", default=None)
#: The call that is being made, for the code that makes it.
making: ContextVar[Call | None] = ContextVar("outlast_tool_call", default=None)
_drawing: ContextVar[Drawn | None] = ContextVar("outlast_drawing", default=None)


@dataclass(slots=True)
class Drawn:
    """What was called inside a block: digests of guarded calls, and the operations that were begun, in order."""

    digests: list[str] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)


@contextmanager
def drawing(drawn: Drawn) -> Iterator[None]:
    """A block whose guarded calls are noted; what is noted of an inner block is noted of the outer one, too."""
    outer = _drawing.get()
    token = _drawing.set(drawn)
    try:
        yield
    finally:
        _drawing.reset(token)
        if outer is not None:
            outer.digests += drawn.digests
            outer.operations += drawn.operations


class NotTaken(Exception):
    """What the call stands on is no longer to be had: nothing is begun, all of it is rolled back."""


class Calling:
    """What the running attempt lends to a tool.

    Attributes:
        workflow_id, activity_seq, attempt, epoch, intent_version, state, using, label: which attempt this is. last_error: how the one before
            it ended, by its code.
        wanted: the calls about which people are to be asked when this turn ends, in the order in which they were made.
        lacking: what of a budget a call of an agent turn had no room for, in words: the turn ends, whatever the code makes of that.
        lock: held while something of the attempt is written; tools may be called from several threads.
    """

    def __init__(self, owned: Owned, effects: Effects) -> None:
        activity = owned.state.activity
        assert activity is not None
        self._owned, self._effects = owned, effects
        self._made: Counter[str] = Counter()
        self._thread = threading.get_ident()
        self._began_in = transaction_of(connections[owned.using])
        self.workflow_id: UUID = owned.row.id
        self.activity_seq, self.attempt, self.last_error = activity.seq, activity.number, activity.last_error
        self.epoch, self.intent_version = owned.row.epoch, owned.row.intent_version
        self.state: State = owned.state
        self.using, self.label = owned.using, owned.label
        self.wanted: list[Mapping[str, Any]] = []
        self.lacking = ""
        self.lock = effects.lock

    def number(self, digest: str) -> int:
        """Which of several equal calls of this attempt this is, from 1."""
        with self.lock:
            self._draw(digest)
            return self._made[digest]

    def drawn(self, digests: Iterable[str]) -> None:
        """These calls were made by an earlier attempt, and are not made again: the next equal one is the next."""
        with self.lock:
            for digest in digests:
                self._draw(digest)

    def _draw(self, digest: str) -> None:
        self._made[digest] += 1
        if (noted := _drawing.get()) is not None:
            noted.digests.append(digest)

    def so_far(self, digest: str) -> int:
        """How many equal calls of this attempt there were."""
        with self.lock:
            return self._made[digest]

    def want(self, call: Mapping[str, Any]) -> None:
        """Note that people are to be asked about this call."""
        with self.lock:
            self.wanted.append(call)

    def must_stand_alone(self, tool: str) -> None:
        """What a tool does is committed before and after its call, and a node whose code is itself one effect cannot wait in the middle.

        Raises:
            DefinitionError: the call is inside a transaction of the code, or in such a node.
        """
        self.must_last(tool)
        node = self._owned.definition.nodes.get(self.state.node) if self._owned.definition is not None else None
        if isinstance(node, Activity) and node.own_effect is not None:
            raise DefinitionError(
                f"{tool} asks people, and {self.label} declares that all of its code is one effect (effect= or commits=), which would be in "
                f"doubt meanwhile. Declare effects={{NAME: Effect(…)}} for the calls that are no tools, or put a gate and an Approval before it."
            )

    def must_last(self, what: str) -> None:
        """What is called is committed before and after.

        Raises:
            DefinitionError: the call is inside a transaction of the code.
        """
        own = threading.get_ident() == self._thread
        if transaction_of(connections[self.using]) != (self._began_in if own else (0, False)):
            raise DefinitionError(
                f"{what} is called inside a transaction, which may be rolled back after the call was made: call it outside the block."
            )

    def in_doubt(self, operations: Iterable[str]) -> str:
        """The first of these effects of which nobody knows whether it happened; "": there is none."""
        return next((one for one in operations if one in self._effects.open), "")

    @from_anywhere
    def begin(self, name: str, request: Any, use: Callable[[], None]) -> Call:
        """Put the call in flight and use up what it stands on, in one commit; it may be made when this returns, unless it is `done`.

        Args:
            name: of the effect: `TOOL`, the tool, and what tells its calls apart. use: raises `NotTaken` where nothing is to be had.
        Raises:
            NotTaken, LostOwnership, AmbiguousOutcome, OperationConflict, and what `use` raises: nothing was begun.
        """
        assert name.startswith(TOOL)
        owned = self._owned
        noted = _drawing.get()
        with self.lock:
            owed = owned.row.owed
            known = set(self._effects.open)
            with committing("begin tool", self.using):
                try:
                    call = self._effects.begin(name, request)
                    if not call.done:
                        use()
                except BaseException:
                    # It is rolled back. Where only the answer of the commit is lost, nobody knows, and it stays open.
                    owned.row.owed = owed
                    self._effects.open.intersection_update(known)
                    raise
                if noted is not None:
                    noted.operations.append(call.id)
        return call

    def closing(self, call: Call) -> AbstractContextManager[Call]:
        """The block in which it is made; what is known at its end is committed at once."""
        return self._effects.closing(call)

    def tidy(self) -> None:
        """Leave no connection behind in a thread that is not the attempt's own: nobody else would close it."""
        if threading.get_ident() != self._thread:
            connections[self.using].close()


def now() -> Calling | None:
    """The attempt in which the calling code runs; None: it runs in none."""
    return _now.get()


@contextmanager
def within(calling: Calling) -> Iterator[None]:
    """The block in which an attempt's code runs."""
    token = _now.set(calling)
    try:
        yield
    finally:
        _now.reset(token)


def unsettled(owned: Owned, effects: Effects) -> str:
    """What a turn must not end with while people are asked: effects of which nobody knows whether they happened; "": there is none."""
    left = set(effects.open)
    if owned.state.activity is not None and owned.state.activity.doubt:
        left |= set(operations.left_open(owned.row.id, owned.using))
    return ", ".join(sorted(left))
