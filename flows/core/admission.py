"""Which new runs are let in: limits of live runs, a pause in which repeated starts become one, and starts that replace what is older. Pure.

    start ──► room in every limit ──────────► runnable, its units held until it ends
         ├──► no room, DEFER ───────────────► waiting, for the first limit that lacks; let in as units become free
         ├──► no room, REFUSE ──────────────► AdmissionRefused, and nothing is stored
         └──► debounce ──► start key; due ──► start
Obligations pass: children, continuations, what is resumed, cleanup, and what says `admit=False`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from flows.core import payload, typed
from flows.core.capacity import Want, label_of
from flows.core.errors import DefinitionError, PayloadError
from flows.core.policies import ESCALATE, Deadline

#: Names of what is counted: live runs of a flow, those of one key, and those of all flows.
RUNS, RUNS_OF, ALL = "runs:", "runs-of:", "runs"
#: The entry of `OUTLAST["ADMISSION"]` that stands for all flows together.
EVERY_FLOW = "*"
#: A debounced start waits at most for so many of its pauses.
MOST_PAUSES = 10
#: What is the same text each time: what a mistake gives (a list, an object with its address) would be a key of its own each time.
KEYS = (str, int, date, UUID)
DEFAULT_PATIENCE = Deadline(days=1, then=ESCALATE)


class Over(StrEnum):
    """What becomes of a new run for which there is no room."""

    DEFER = "defer"
    REFUSE = "refuse"


DEFER, REFUSE = Over.DEFER, Over.REFUSE


@dataclass(frozen=True, slots=True)
class Admission:
    """Which new runs of a flow are let in.

    Args:
        total: live runs of the flow at once. per: live runs of one key at once; key: a pure function of the input that gives it.
        over: DEFER (the run waits, visibly, for its turn) or REFUSE (the start raises AdmissionRefused).
        patience: how long a deferred run waits, and what happens then.
        debounce: starts of one key within this time of each other become one run, with the newest input.
        newest: a pure function of the input that gives a key, or None: a newer run of it ends the older one.
    """

    total: int | None = None
    per: int | None = None
    key: Callable[[Mapping[str, Any]], Any] | None = None
    over: Over = DEFER
    patience: Deadline = DEFAULT_PATIENCE
    debounce: timedelta | None = None
    newest: Callable[[Mapping[str, Any]], Any] | None = None

    def __post_init__(self) -> None:
        typed.must("Admission(total=…)", self.total, (int, typed.NONE), "Admission(total=100)")
        typed.must("Admission(per=…)", self.per, (int, typed.NONE), "Admission(per=5, key=tenant_of)")
        typed.must("Admission(over=…)", self.over, (Over,), "Admission(over=REFUSE)")
        typed.must("Admission(patience=…)", self.patience, (Deadline,), "Admission(patience=Deadline(hours=2, then=CANCEL))")
        typed.span("Admission(debounce=…)", self.debounce, "Admission(debounce=seconds(5))", optional=True)
        if self.per is not None and self.key is None:
            raise DefinitionError("Admission(per=…) counts by key: write Admission(per=5, key=tenant_of).")
        for option in ("total", "per"):
            value = getattr(self, option)
            if value is not None and value < 1:
                raise DefinitionError(f"Admission({option}={value}): at least 1; to stop new runs, stop starting them.")
        if self.debounce is not None and self.debounce <= timedelta(0):
            raise DefinitionError("Admission(debounce=…) needs a positive span: seconds(5).")


def wants(flow: str, admission: Admission | None, totals: Mapping[str, int], given: Mapping[str, Any]) -> Iterator[Want]:
    """What a new run needs a unit of, the narrowest first: so whoever waits for more holds what is his own only.

    Raises:
        PayloadError: the key is no text that can be stored.
    """
    shown = flow.replace(":", "%3A")
    if admission is not None and admission.per is not None and admission.key is not None:
        yield _runs(RUNS_OF + shown, key_of(admission.key, given, f"the admission key of {flow}"), admission.per)
    total = totals.get(flow, admission.total if admission is not None else None)
    if total is not None:
        yield _runs(RUNS + shown, "", total)
    if EVERY_FLOW in totals:
        yield _runs(ALL, "", totals[EVERY_FLOW])


def _runs(name: str, key: str, size: int) -> Want:
    return Want(name, key, size, lasting=True, rate=None, burst=None)


def key_of(function: Callable[[Any], Any], given: Any, what: str) -> str:
    """The key that an author's function gives; an empty one counts for all without a key.

    Raises:
        PayloadError: it is nothing that is the same text each time, or too long.
    """
    value = function(given)
    if value is not None and not isinstance(value, KEYS):
        raise PayloadError(what, f"must be text, or a whole number, date or UUID, got {type(value).__name__}")
    text = "" if value is None else str(value)
    if text:
        payload.check_name(text, what)
    return text


def words(label: str) -> str:
    """What a run waits for that is not let in yet."""
    return f"waiting for room among the live runs ({label})"


__all__ = ["ALL", "DEFER", "EVERY_FLOW", "REFUSE", "RUNS", "RUNS_OF", "Admission", "Over", "key_of", "label_of", "wants", "words"]
