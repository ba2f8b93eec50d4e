"""The journal in an attempt: each call of an agent turn is on record before and after it is made (docs/decisions/0007).

    ask ──► on record: its answer; nothing is called
       └──► stop? ──► begin: the entry, and what the call may use, one commit ──► call ──► record: answer, usage, one commit
                      └─ no room: the turn ends as one that the gate refuses; a raise has it go on
Which entry stands for a call: `flows.core.places`. Guard: the workflow, locked as its running attempt's owner; zero rows: LostOwnership.
Race: two attempts at one visit: the fence. Crash between begin and record: the next attempt makes the entry lost, and the call anew.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from flows.conf import conf
from flows.core import artifact, canonical, payload
from flows.core.errors import BudgetPending, InvalidCandidate, LostOwnership, PayloadError, TurnEnds
from flows.core.nodes.agent import AgentTurn
from flows.core.places import Places
from flows.core.protocol import BudgetKind
from flows.core.turn_errors import ToolFailed, TurnEntries
from flows.core.turns import MAX_REQUEST_BYTES, Entry, EntryKind, EntryStatus
from flows.services import ledger
from flows.services.authored import from_anywhere
from flows.services.calling import Calling, Drawn, drawing
from flows.services.entries import Answered, after_error, answered, drawn_by, opened, sealed, tool_answer
from flows.services.owned import Owned
from flows.store import budgets
from flows.store import journal as store
from flows.store.sql import committing

if TYPE_CHECKING:
    from flows.services.deciding import Deciding

logger = logging.getLogger("outlast.journal")

DIVERGED = "AGENT_DIVERGED"
MAX_NAME = 200
Errors = tuple[type[BaseException], ...]


@dataclass(slots=True)
class Call:
    """One call: on record (`known`), or begun and to be made. `key`: of its place, for what is asked inside it."""

    entry: Entry
    key: str
    known: bool
    fatal: Errors = ()
    prompt_hash: str = ""
    drawn: Drawn = field(default_factory=Drawn)
    over: bool = False

    @property
    def answer(self) -> Any:
        """What it has answered.

        Raises:
            ToolFailed: it is a tool, and raised.
        """
        answer = copy.deepcopy(self.entry.answer)  # code cannot change the record
        if self.entry.failed:
            raise ToolFailed(self.entry.name, self.entry.code, str(answer.get("said", "")))
        return answer


class _NoRoom(Exception):
    """Roll back: a budget has no room for the call."""


_within: ContextVar[Call | None] = ContextVar("outlast_entry", default=None)


class Journal:
    """`attempt.journal`: what the calls of this visit have answered, and the way to make one that no crash pays twice.

    Each of `model`, `tool` and `unit` has an async twin, `amodel`, `atool` and `aunit`, whose `call` is awaited.
    """

    def __init__(
        self, owned: Owned, calling: Calling, deciding: Deciding, owns: Callable[[], bool], beat: Callable[[], Any]
    ) -> None:
        activity = owned.state.activity
        assert owned.definition is not None and activity is not None
        node = owned.definition.nodes[activity.node]
        assert isinstance(node, AgentTurn)
        self._owned, self._calling, self._deciding, self._owns, self._beat = owned, calling, deciding, owns, beat
        self._node = node
        self._visit = store.Visit(owned.row.id, activity.seq, activity.number, owned.row.epoch)
        self._places: Places | None = None
        self._since = 0

    # ------------------------------------------------------------ what authors and adapters call

    @property
    @from_anywhere
    def entries(self) -> tuple[Entry, ...]:
        """What this attempt has asked for so far, answered before or by it, in order; not what is inside another call."""
        with self._calling.lock:
            return self._loaded().reached

    def model(self, name: str, call: Callable[[], Any], *, prompt: Any = None, prompt_hash: str = "", model: str = "") -> Any:
        """Call a model, or get what it answered: `call` takes nothing and returns `Paid(answer, usage=…)`, or the answer alone.

        Args:
            name: which call of the code it is, one line. prompt: text, bytes or JSON, of which only the hash is kept; or prompt_hash.
            model: the model's name; default `name`.
        Raises:
            TurnStopped: a rule of `stop=` holds. BudgetPending: there is no budget; let it out. LostOwnership: stop.
            PayloadError: the answer cannot be stored, or holds a model's reasoning. What `call` raises; the next attempt calls anew.
        """
        with self._made(self._model(name, prompt, prompt_hash, model)) as made:
            return made.answer if made.known else self._record(made, call())

    async def amodel(
        self, name: str, call: Callable[[], Awaitable[Any]], *, prompt: Any = None, prompt_hash: str = "", model: str = ""
    ) -> Any:
        """Async twin of `model`."""
        with self._made(self._model(name, prompt, prompt_hash, model)) as made:
            return made.answer if made.known else self._record(made, await call())

    def tool(self, name: str, arguments: Any, call: Callable[[], Any], *, fatal: Errors = ()) -> Any:
        """Call a tool, or get what it answered: a JSON value.

        Args:
            arguments: a JSON value; with `name`, and which of equal calls it is, the identity of the call. call: takes nothing.
            fatal: errors that end the attempt by their class; others are an answer to the model.
        Raises:
            ToolFailed: the tool raised, now or when it was called; `code` and `said` are for the model. ApprovalPending, BudgetPending: let it
            out. TurnStopped, LostOwnership, AmbiguousOutcome; what is `fatal`.
        """
        with self._made(self._tool(name, arguments, fatal)) as made:
            return made.answer if made.known else self._record(made, call())

    async def atool(self, name: str, arguments: Any, call: Callable[[], Awaitable[Any]], *, fatal: Errors = ()) -> Any:
        """Async twin of `tool`."""
        with self._made(self._tool(name, arguments, fatal)) as made:
            return made.answer if made.known else self._record(made, await call())

    def unit(self, name: str, call: Callable[[], Any], *, arguments: Any = None) -> Any:
        """Do another unit of work once: a step of a tool, or what a library wants to be durable. It draws on no budget.

        Raises:
            What `call` raises; the next attempt does it anew. LostOwnership, PayloadError.
        """
        with self._made(self._unit(name, arguments)) as made:
            return made.answer if made.known else self._record(made, call())

    async def aunit(self, name: str, call: Callable[[], Awaitable[Any]], *, arguments: Any = None) -> Any:
        """Async twin of `unit`."""
        with self._made(self._unit(name, arguments)) as made:
            return made.answer if made.known else self._record(made, await call())

    # ------------------------------------------------------------ ask, begin

    def _model(self, name: str, prompt: Any, prompt_hash: str, model: str) -> Call:
        if prompt is not None:
            prompt_hash = artifact.hash_of(prompt, f"{name!r:.60} of {self._owned.label}: its prompt")
        return self._ask(EntryKind.MODEL, name, prompt_hash, None, model=model or name)

    def _tool(self, name: str, arguments: Any, fatal: Errors) -> Call:
        producer = f"{name!r:.60} of {self._owned.label}: its arguments"
        text = payload.text(arguments, producer, conf.MAX_INPUT_BYTES)
        value = payload.decode(json.loads(text))
        kept = value if len(text.encode()) <= MAX_REQUEST_BYTES else None
        return self._ask(EntryKind.TOOL, name, canonical.digest(value, producer), kept, fatal=fatal)

    def _unit(self, name: str, arguments: Any) -> Call:
        producer = f"{name!r:.60} of {self._owned.label}: its arguments"
        return self._ask(EntryKind.UNIT, name, "" if arguments is None else artifact.hash_of(arguments, producer), None)

    @from_anywhere
    def _ask(self, kind: EntryKind, name: str, digest: str, request: Any, *, model: str = "", fatal: Errors = ()) -> Call:
        """Where this call stands: on record, or begun when this returns."""
        if not payload.is_name(name) or len(name) > MAX_NAME or len(name.splitlines()) > 1:
            raise PayloadError(f"a call of {self._owned.label}", f"its name is one line of at most {MAX_NAME} characters")
        self._calling.must_last(f"{name} of {self._owned.label}")
        outer = _within.get()
        try:
            with self._calling.lock:
                places = self._loaded()
                place = places.place(kind, name, digest, outer.key if outer is not None else "")
                found, aside = places.find(place)
                if aside:
                    self._set_aside([one.number for one in aside], f"{kind} {name}")
                known = found is not None and found.status is not EntryStatus.WAITING
                if found is None or not known:
                    begun = Entry(
                        found.number if found is not None else 0,
                        kind,
                        name,
                        EntryStatus.BEGUN,
                        self._visit.attempt,
                        request_hash=place.digest,
                        request=request,
                        model=model,
                        release=self._owned.row.release,
                        within=outer.entry.number if outer is not None else 0,
                    )
                    found = self._begun(begun)
                else:
                    self._calling.drawn(found.guarded)
                places.take(found)
                return Call(found, place.key, known, fatal, digest)
        finally:
            self._calling.tidy()

    def _loaded(self) -> Places:
        if self._places is None:
            visit, using = self._visit, self._owned.using
            found = {one.number: opened(one) for one in store.entries(visit.workflow, visit.seq, using)}
            if any(one.status is EntryStatus.BEGUN for one in found.values()):
                with committing("journal lose", using):
                    self._hold()
                    lost = store.lose(visit, using)
                found |= {number: replace(found[number], status=EntryStatus.LOST) for number in lost}
            self._since = store.stopped(visit, STOPS, using) if found else 0
            self._places = Places(found.values())
            malformed = store.stopped(visit, [InvalidCandidate.code], using) if found else 0
            if aside := self._places.behind_answer(malformed):
                self._set_aside([one.number for one in aside], "the model once more, whose answer was malformed")
        return self._places

    def _hold(self) -> None:
        """The workflow's row, as its running attempt's owner.

        Raises:
            LostOwnership: it is somebody else's.
        """
        owned, row, activity = self._owned, self._owned.row, self._owned.state.activity
        assert activity is not None
        if not self._owns() or not budgets.lock_owned(
            row.id, row.version, row.epoch, owned.worker, activity.seq, activity.fence, owned.using
        ):
            raise LostOwnership(f"workflow {row.id} is no longer this worker's; {owned.label} stops")

    def _set_aside(self, numbers: list[int], what: str) -> None:
        owned = self._owned
        with committing("journal set aside", owned.using):
            self._hold()
            store.set_aside(self._visit, numbers, owned.using)
        places = self._loaded()
        for number in numbers:
            places.change(replace(places.entries[number], status=EntryStatus.STALE))
        logger.warning(
            "%s: workflow %s (%s) asks for %s, and its journal goes on with other calls: %d are set aside",
            DIVERGED, owned.row.id, owned.label, what, len(numbers),
        )  # fmt: skip

    def _begun(self, entry: Entry) -> Entry:
        """The entry and what the call may use, in one commit; the call may be made when this returns."""
        owned, using = self._owned, self._owned.using
        if not entry.number:
            self._must_not_stop(entry)
        wants = self._wants(entry.kind)
        try:
            with committing("journal begin", using):
                self._hold()
                number = entry.number
                if not number:
                    number = store.begin(self._visit, entry, sealed(entry), using)
                elif not store.take_up(self._visit, number, using):
                    raise LostOwnership(f"entry {number} of {owned.label} was taken up by another attempt")
                self._beat()
                if wants and (lacks := ledger.reserve_call(owned, number, wants)):
                    raise _NoRoom(lacks)
        except _NoRoom as full:
            self._calling.lacking, owned.lacks = str(full), wants
            raise BudgetPending(f"{entry.name} of {owned.label}: {full}") from None
        return replace(entry, number=number)

    def _wants(self, kind: EntryKind) -> Mapping[BudgetKind, Any]:
        return self._node.of_model if kind is EntryKind.MODEL else ledger.ONE_TOOL if kind is EntryKind.TOOL else {}

    def _must_not_stop(self, entry: Entry) -> None:
        """A rule of `stop=`, or the bound of the journal.

        Raises:
            TurnStopped: it holds.
        """
        known = self._loaded().entries
        if len(known) >= conf.MAX_JOURNAL_ENTRIES:
            raise TurnEntries(f"the journal of {self._owned.label} has {len(known)} entries: raise MAX_JOURNAL_ENTRIES")
        stop = self._node.stop
        seconds = store.computed(self._visit, self._since, self._owned.using) if stop.span is not None else 0.0
        past = [one for number, one in sorted(known.items()) if one.attempt > self._since]
        if entry.kind is EntryKind.MODEL:
            stop.before_model(past, seconds)
        elif entry.kind is EntryKind.TOOL:
            stop.before_tool(past, entry.name, entry.request_hash, seconds)

    # ------------------------------------------------------------ record

    @contextmanager
    def _made(self, call: Call) -> Iterator[Call]:
        """The block in which a call is made; what it raises is recorded, as an answer or as a failure."""
        if call.known:
            yield call
            return
        token = _within.set(call)
        try:
            with drawing(call.drawn):
                yield call
        except BaseException as error:
            if call.over or isinstance(error, LostOwnership):
                raise
            self._raised(call, error)
            raise
        finally:
            _within.reset(token)

    def _record(self, call: Call, given: Any) -> Any:
        """The answer, as every later attempt gets it."""
        made = answered(call.entry, given, f"{call.entry.name!r:.60} of {self._owned.label}")
        self._end(call, made)
        return made.answer

    def _raised(self, call: Call, error: BaseException) -> None:
        """What a call has raised: people are asked, an answer, a failure; or nobody knows, and it stays begun.

        Raises:
            ToolFailed: what is told to the model. AmbiguousOutcome: nobody knows whether an effect of it happened.
        """
        if isinstance(error, TurnEnds):
            self._end(call, None)
            return
        doubt = self._calling.in_doubt(call.drawn.operations)
        made = after_error(call.entry, error, doubt=doubt, fatal=call.fatal)
        if made is None:
            return
        self._end(call, made)
        if made.text:
            raise tool_answer(call.entry.name, made) from error

    @from_anywhere
    def _end(self, call: Call, made: Answered | None) -> None:
        """The entry ends, with what the call has used, in one commit. None: people are asked about it; it has used nothing."""
        owned, entry, using = self._owned, call.entry, self._owned.using
        call.over = True
        try:
            with self._calling.lock:
                with committing("journal wait" if made is None else "journal record", using):
                    self._hold()
                    if not self._write(call, made):
                        raise LostOwnership(f"entry {entry.number} of {owned.label} is no longer this attempt's")
                    if self._wants(entry.kind):
                        ledger.settle_call(owned, entry.number, drawn_by(entry, made, self._node.of_model))
                self._tell(call, made)
        finally:
            self._calling.tidy()

    def _write(self, call: Call, made: Answered | None) -> bool:
        number, using = call.entry.number, self._owned.using
        if made is None:
            return store.wait(self._visit, number, using)
        return store.record(self._visit, number, made.outcome(call.drawn), using)

    def _tell(self, call: Call, made: Answered | None) -> None:
        """What is on record now is known here, and the artifact of the attempt counts what it has paid."""
        entry = call.entry
        if made is None:
            self._loaded().change(replace(entry, status=EntryStatus.WAITING))
            return
        self._loaded().change(made.as_entry(entry, call.drawn))
        if entry.kind is EntryKind.MODEL:
            given = {"prompt_hash": call.prompt_hash, "output_hash": made.hash, "usage": made.usage}
            self._deciding.record(made.model or entry.model, given)


#: The codes with which a rule has ended an attempt.
STOPS = ("TURN_CALLS", "TURN_TOOLS", "TURN_TOKENS", "TURN_TIME", "TURN_REPEATS", "TURN_STOPPED")
