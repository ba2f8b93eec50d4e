"""What a call of an agent turn has brought, as its entry keeps it: an answer, a tool's own error, or a failure; and what it has used.

returned                                       done
a tool raised                                  failed, with its code and text as the answer
  an effect in doubt                           nothing: AmbiguousOutcome ends the attempt, and the entry stays begun
  fatal, or an error of the runtime            failed, without an answer; the error ends the attempt
a model, or a unit, raised                     failed; what it may have used counts, unless its error says that nothing was done
the process is ended, a task is cancelled      nothing: the entry stays begun
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from flows.conf import conf
from flows.core import artifact, effects, payload
from flows.core.budget import ZERO, amount_of
from flows.core.errors import ActivityTimeout, AmbiguousOutcome, DefinitionError, IntentSuperseded, PayloadError, classify
from flows.core.protocol import BudgetKind
from flows.core.turn_errors import ToolFailed, TurnStopped
from flows.core.turns import MAX_SAID, Entry, EntryKind, EntryStatus, Paid, tokens_of, without_reasoning
from flows.services.calling import Drawn
from flows.store import journal as store
from flows.store.sql import dumps

#: What a tool raises that is no answer to a model, whatever is declared of it.
OURS = (ActivityTimeout, AmbiguousOutcome, DefinitionError, IntentSuperseded, TurnStopped)


@dataclass(frozen=True, slots=True)
class Answered:
    """How a call ended. `text`: its answer as plain JSON; "": none. `paid`: whether it may have used what was set aside for it."""

    status: EntryStatus
    text: str = ""
    code: str = ""
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    paid: bool = True

    @property
    def answer(self) -> Any:
        """As every later attempt gets it."""
        return payload.decode(json.loads(self.text)) if self.text else None

    @property
    def hash(self) -> str:
        """Of the answer."""
        return artifact.digest_of(self.answer) if self.text else ""

    def outcome(self, drawn: Drawn) -> store.Outcome:
        """As the entry is ended with it."""
        return store.Outcome(
            self.status,
            payload.encode(self.answer, "an answer") if self.text else None,
            self.hash,
            len(self.text.encode()),
            self.code,
            self.model,
            dumps(dict(self.usage)),
            drawn.operations[-1] if drawn.operations else None,
            drawn.digests,
        )

    def as_entry(self, entry: Entry, drawn: Drawn) -> Entry:
        """The entry as it is on record then."""
        return replace(
            entry,
            status=self.status,
            answer=self.answer,
            answer_hash=self.hash,
            answer_bytes=len(self.text.encode()),
            code=self.code,
            model=self.model or entry.model,
            usage=self.usage,
            operation_id=drawn.operations[-1] if drawn.operations else "",
            guarded=tuple(drawn.digests),
        )


def answered(entry: Entry, given: Any, producer: str) -> Answered:
    """What a call has returned.

    Raises:
        PayloadError: it cannot be stored: it is not JSON, too large, or holds a model's reasoning.
    """
    if entry.kind is not EntryKind.MODEL:
        return Answered(EntryStatus.DONE, payload.text(given, f"the answer of {producer}", conf.MAX_RESULT_BYTES))
    paid = given if isinstance(given, Paid) else Paid(given)
    without_reasoning(paid.answer, f"the answer of {producer}")
    text = payload.text(paid.answer, f"the answer of {producer}", conf.MAX_RESULT_BYTES)
    kept = artifact.model_call(producer, paid.model or entry.model, usage=paid.usage)
    return Answered(EntryStatus.DONE, text, model=kept.model, usage=kept.usage)


def sealed(entry: Entry) -> str | None:
    """The arguments of an entry, as they are stored."""
    return None if entry.request is None else payload.encode(entry.request, f"the arguments of {entry.name}")


def opened(entry: Entry) -> Entry:
    """An entry as it is stored, with its arguments and its answer as values."""
    return replace(entry, request=payload.decode(entry.request), answer=payload.decode(entry.answer))


def after_error(entry: Entry, error: BaseException, *, doubt: str, fatal: tuple[type[BaseException], ...]) -> Answered | None:
    """What a call has raised; None: the entry stays begun.

    Raises:
        AmbiguousOutcome: an effect of it is in doubt, which ends the attempt.
    """
    if not isinstance(error, Exception):
        return None
    if doubt or isinstance(error, AmbiguousOutcome):
        if isinstance(error, AmbiguousOutcome):
            return None
        raise AmbiguousOutcome(f"{entry.name} raised, and nobody knows whether {doubt} happened") from error
    failure = classify(error)
    nothing_done = effects.after_error(error) is effects.OperationStatus.FAILED
    if entry.kind is not EntryKind.TOOL or isinstance(error, (*OURS, *fatal)):
        return Answered(EntryStatus.FAILED, code=failure.code, model=entry.model, paid=not nothing_done)
    return Answered(EntryStatus.FAILED, dumps({"error": failure.code, "said": _clean(_said(error))}), code=failure.code)


def _said(error: Exception) -> str:
    """What a model is told of an error; what people said to a call that they did not allow is part of it."""
    if isinstance(error, PayloadError | ToolFailed):
        return error.problem if isinstance(error, PayloadError) else error.said
    comment = getattr(error, "comment", "")
    return f"{error}: {comment}" if comment else str(error)


def tool_answer(name: str, made: Answered) -> ToolFailed:
    """A tool's own error, as the model is told of it now and by every later attempt."""
    return ToolFailed(name, made.code, str(made.answer["said"]))


def drawn_by(entry: Entry, made: Answered | None, of_model: Mapping[BudgetKind, Decimal]) -> dict[BudgetKind, Decimal]:
    """What is booked of a call. Of a kind of which nothing is said, all that was set aside counts."""
    if entry.kind is EntryKind.TOOL:
        return {BudgetKind.TOOL_CALLS: Decimal(made is not None)}
    if made is None:
        return dict.fromkeys(of_model, ZERO)
    used = {BudgetKind.MODEL_CALLS: Decimal(1)}
    if made.status is EntryStatus.FAILED:
        return used if made.paid else {**dict.fromkeys(of_model, ZERO), **used}
    if "input_tokens" in made.usage or "output_tokens" in made.usage:
        used[BudgetKind.MODEL_TOKENS] = Decimal(tokens_of(made.usage))
    if artifact.COST in made.usage:
        used[BudgetKind.COST] = amount_of(BudgetKind.COST, made.usage[artifact.COST], f"the usage of {entry.name}")
    return used


def _clean(text: str) -> str:
    """A text as PostgreSQL keeps it, cut."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()[:MAX_SAID]
