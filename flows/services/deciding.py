"""What an attempt tells of its model, and what its model is told: the author's side of artifacts (O1) and of the bounded context (O2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flows.core import artifact
from flows.core.artifact import ModelCall
from flows.core.context import Context
from flows.core.errors import DefinitionError
from flows.core.nodes.activity import Decision
from flows.services.arrows import Ending
from flows.services.context import Wanted, context_of
from flows.services.owned import Owned


class Deciding:
    """The model calls of one attempt, in order, and the hash of the context that it built last."""

    def __init__(self, owned: Owned) -> None:
        self._owned = owned
        self._calls: list[ModelCall] = []
        self._context_hash = ""

    def record(self, model: str, given: Mapping[str, Any]) -> None:
        """See `Attempt.record_model`."""
        owned = self._owned
        assert owned.definition is not None
        node = owned.definition.nodes[owned.state.node]
        if not isinstance(node, Decision):
            raise DefinitionError(
                f"{owned.label} is no Decision, so nothing keeps its model calls: ask the model in a Decision, whose attempts are recorded."
            )
        known = {name: value for name, value in given.items() if name in _KNOWN}
        unknown = {name: value for name, value in given.items() if name not in _KNOWN}
        producer = f"a model call of {owned.label}"
        call = artifact.model_call(producer, model, **known, context_hash=self._context_hash, unknown=unknown)
        self._calls.append(call)

    def told(self, ending: Ending) -> Ending:
        """The same ending, with what was told of the model; itself where nothing was."""
        if not (self._calls or self._context_hash):
            return ending
        return replace(ending, calls=tuple(self._calls), context_hash=self._context_hash)

    def context(self, wanted: Wanted, conflict: str | None) -> Context:
        """See `Attempt.context`; calls that follow are recorded with its hash."""
        made = context_of(self._owned, wanted, conflict)
        self._context_hash = made.hash
        return made


_KNOWN = frozenset({"prompt", "prompt_hash", "output", "output_hash", "usage"})
