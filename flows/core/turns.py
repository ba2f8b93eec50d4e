"""What an agent turn is made of, as its author declares it and as its journal keeps it. Pure (docs/decisions/0007).

entry   begun ──► done                    the answer is on record, and is used again
             ├──► failed                  a tool's own error is an answer too; a failed call of a model is made anew
             ├──► waiting ──► begun       people are asked about the call
             ├──► lost                    its attempt is over, and it left no answer: charged, and made anew as another entry
             └──► stale                   the code asks for something else at its place
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from flows.core import typed
from flows.core.errors import CapacityUnavailable, DefinitionError, PayloadError
from flows.core.spans import bounded
from flows.core.turn_errors import TurnCalls, TurnRepeats, TurnTime, TurnTokens, TurnTools

#: Bytes of a tool's arguments that an entry keeps to be shown; longer ones are kept by their hash alone.
MAX_REQUEST_BYTES = 4096
#: Characters of a tool's own error that are kept, and shown to the model.
MAX_SAID = 2000
#: Part kinds of answers of models that are never stored (O7).
PRIVATE = frozenset({"thinking", "reasoning", "redacted_thinking"})
#: Keys under which providers hand out the same: anywhere, and in a message, which says whose it is (a tool may have an argument of that name).
PRIVATE_KEYS = frozenset({"reasoning_content"})
PRIVATE_IN_MESSAGE = frozenset({"reasoning", "reasoning_details", "thinking", "thinking_blocks"})
_KINDS = ("part_kind", "kind", "type")
#: Who speaks in a message that may hold a model's reasoning; an argument of a tool may have the name, too.
_ROLES = ("assistant", "model")


def is_private(part: Any) -> bool:
    """Whether this part of an answer is a model's reasoning."""
    if not isinstance(part, Mapping):
        return False
    return part.get("thought") is True or any(part.get(name) in PRIVATE for name in _KINDS if isinstance(part.get(name), str))


def private_keys(value: Mapping[str, Any]) -> frozenset[str]:
    """The keys of this object under which a model's reasoning stands."""
    hidden = PRIVATE_KEYS | PRIVATE_IN_MESSAGE if value.get("role") in _ROLES else PRIVATE_KEYS
    return frozenset(key for key in hidden if value.get(key))


class EntryKind(StrEnum):
    """What one entry of a journal stands for."""

    MODEL = "model"
    TOOL = "tool"
    UNIT = "unit"


class EntryStatus(StrEnum):
    """Where an entry is."""

    BEGUN = "begun"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    STALE = "stale"


#: Entries without an end.
OPEN = frozenset({EntryStatus.BEGUN, EntryStatus.WAITING})


@dataclass(frozen=True, slots=True)
class Entry:
    """One unit of an agent turn, as it is on record.

    Attributes:
        number: its place in the visit. kind, name, status: what it is. attempt: that made (or makes) it.
        request: a tool's arguments, where they are short; request_hash: of the arguments, or of a prompt.
        answer: what is used again; of a failed tool what it said. answer_hash, answer_bytes: of that. code: why it failed.
        model, release, usage: of a call of a model. operation_id: the effect that a tool has made.
        guarded: digests of the calls in it that people were asked about, or that are effects, in order.
        within: the entry inside which it was made; 0: none.
    """

    number: int
    kind: EntryKind
    name: str
    status: EntryStatus
    attempt: int
    request_hash: str = ""
    request: Any = None
    answer: Any = None
    answer_hash: str = ""
    answer_bytes: int = 0
    code: str = ""
    model: str = ""
    release: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    operation_id: str = ""
    guarded: tuple[str, ...] = ()
    within: int = 0
    began_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def usable(self) -> bool:
        """Whether it stands for its call. A tool that failed in a way that ended the attempt has no answer."""
        if self.status is EntryStatus.FAILED:
            return self.kind is EntryKind.TOOL and self.answer is not None
        return self.status in (EntryStatus.DONE, EntryStatus.WAITING)

    @property
    def failed(self) -> bool:
        """Whether its answer is an error."""
        return self.status is EntryStatus.FAILED


@dataclass(frozen=True, slots=True)
class Paid:
    """What a call of a model returns to the journal: its answer (a JSON value, without reasoning), and what it has used.

    Args:
        usage: input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens; cost, as text. model: its name, where the
            provider says another one than was asked for.
    """

    answer: Any
    usage: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class Stop:
    """When an agent turn ends without an answer, judged by code before each call, over all attempts of the visit.

    Args:
        calls: of the model, at most; not those that its provider had no capacity for. tools: of tools, those about which people are asked
            included. tokens: that the model's calls have used together. span: computing time of the attempts.
        same: a call of a tool that was made so often with the same answer is not made again.
    A person who has the run go on after that grants as much again.
    """

    calls: int | None = None
    tools: int | None = None
    tokens: int | None = None
    span: timedelta | None = None
    same: int | None = 3

    def __post_init__(self) -> None:
        for name in ("calls", "tools", "tokens", "same"):
            given: Any = getattr(self, name)
            if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
                raise DefinitionError(f"Stop({name}=…) is a whole number from 1, or None; got {given!r:.60}.")
        if self.span is not None:
            typed.span("Stop(span=…)", self.span, "Stop(span=minutes(10))")
            if bounded("Stop(span=…)", self.span) <= timedelta(0):
                raise DefinitionError(f"Stop(span=…) is a positive span of time; got {self.span!r}.")

    def before_model(self, past: Sequence[Entry], seconds: float) -> None:
        """Another call of the model may be made.

        Raises:
            TurnStopped: a rule holds.
        """
        models = [one for one in past if one.kind is EntryKind.MODEL and one.code != CapacityUnavailable.code]
        if self.calls is not None and len(models) >= self.calls:
            raise TurnCalls(f"{len(models)} calls of the model were made")
        used = sum(tokens_of(one.usage) for one in models)
        if self.tokens is not None and used >= self.tokens:
            raise TurnTokens(f"{used:,} tokens were used")
        self._in_time(seconds)

    def before_tool(self, past: Sequence[Entry], name: str, digest: str, seconds: float) -> None:
        """Another call of a tool may be made.

        Raises:
            TurnStopped: a rule holds.
        """
        tools = [one for one in past if one.kind is EntryKind.TOOL]
        if self.tools is not None and len(tools) >= self.tools:
            raise TurnTools(f"{len(tools)} calls of tools were made")
        alike = [one for one in tools if (one.name, one.request_hash) == (name, digest) and one.status is not EntryStatus.WAITING]
        equal = [one.answer_hash for one in alike if one.usable]
        if self.same is not None and len(equal) >= self.same and len(set(equal[-self.same :])) == 1:
            raise TurnRepeats(f"{name} was called {len(equal)} times with the same arguments and the same answer")
        self._in_time(seconds)

    def _in_time(self, seconds: float) -> None:
        if self.span is not None and seconds >= self.span.total_seconds():
            raise TurnTime(f"{seconds:.0f} seconds were computed")


@dataclass(frozen=True, kw_only=True)
class Keep:
    """What of the answers of tools a prompt of `Loop` holds, however many there were.

    Args:
        results: so many of the newest, whole. bytes: of each of them, at most. lines: of the index of all calls, at most; the newest.
    """

    results: int = 4
    bytes: int = 12_000
    lines: int = 60

    def __post_init__(self) -> None:
        for name, least in (("results", 0), ("bytes", 64), ("lines", 1)):
            given: Any = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or given < least:
                raise DefinitionError(f"Keep({name}=…) is a whole number from {least}; got {given!r:.60}.")


def tokens_of(usage: Mapping[str, Any]) -> int:
    """The tokens that a call has used: what went in and what came out."""
    return int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)


def without_reasoning(answer: Any, producer: str) -> None:
    """An answer of a model may be kept: it has no part that is a model's reasoning.

    Raises:
        PayloadError: it has one; names where, never what.
    """
    left: list[tuple[Any, str]] = [(answer, "")]
    while left:
        value, path = left.pop()
        if isinstance(value, Mapping):
            if is_private(value) or private_keys(value):
                raise PayloadError(
                    producer, f"holds a model's reasoning{_at(path)}, which is stored nowhere: leave that part out"
                )
            left += [(inner, f"{path}.{key}") for key, inner in value.items()]
        elif isinstance(value, list | tuple):
            left += [(inner, f"{path}[{place}]") for place, inner in enumerate(value)]


def _at(path: str) -> str:
    return f" (at {path.lstrip('.'):.100})" if path else ""
