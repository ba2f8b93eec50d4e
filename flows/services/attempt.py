"""One attempt, as author code gets it: what it reads, and what it may say while it runs (`attempting` runs it)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from django.db import connections

from flows.conf import conf
from flows.core import payload
from flows.core.context import Context
from flows.core.errors import (
    DefinitionError,
    LostOwnership,
)
from flows.core.ids import operation_id
from flows.core.nodes.activity import Activity
from flows.core.nodes.agent import AgentTurn
from flows.core.protocol import LIVE, Status
from flows.services import ledger
from flows.services.authored import from_anywhere, transaction_of
from flows.services.calling import Calling
from flows.services.context import ITEM_BYTES, Wanted
from flows.services.deciding import Deciding
from flows.services.effects import Call, Effects
from flows.services.follow import timeout_of
from flows.services.given import Limits, Results
from flows.services.items import Items
from flows.services.journal import Journal
from flows.services.operation import headers
from flows.services.owned import Owned
from flows.services.releasing import Behaviour, behaviour
from flows.services.tools import Tools
from flows.store import attempts as store
from flows.store.sql import loads

CONTINUE, CANCEL, LOST = "continue", "cancel", "lost"


class Attempt:
    """One attempt at an activity, as handed to author code.

    Attributes:
        input, results: the workflow's input, and the newest result of each node.
        operation_id: the idempotency key for outside effects; the same over all attempts of this visit.
        headers: it, and the fences, to send along with a request.
        id, number: of this attempt. epoch, intent_version: to hand to systems that can fence.
        notes: what an earlier attempt of this visit left with `note`. checkpoint: the workflow's, as last saved.
        checkpoint_conflict: why the state that the checkpoint names is gone: for a Decision, and for a node to which a StateConflict leads
        (others do not run then).
        approved: the frozen candidate that people approved, where the node's gate asks for an approval; execute exactly this.
        journal, tools: the calls of an agent turn, each made once, and its declared tools (`AgentTurn`).
        versions: what the flow's probes saw just before this attempt (`fresh=`): name → version, to hand to systems that compare and set.
    """

    def __init__(
        self,
        owned: Owned,
        limits: Limits,
        begun: Effects | None = None,
        deciding: Deciding | None = None,
        calling: Calling | None = None,
    ) -> None:
        state, activity = owned.state, owned.state.activity
        assert activity is not None
        self._owned, self._limits = owned, limits
        self.input: Mapping[str, Any] = copy.deepcopy(dict(state.input))
        self.results: Mapping[str, Any] = Results(state.results)
        self.workflow_id = state.workflow_id
        self.flow, self.key, self.node, self.step = state.flow, state.key, activity.node, activity.step
        self.visit, self.number = activity.visit, activity.number
        self.id = f"{state.workflow_id}/{activity.seq}/{activity.number}"
        name = f"{activity.node}.{activity.step}" if activity.step else activity.node
        self.operation_id = operation_id(state.workflow_id, name, activity.visit)
        self.epoch, self.intent_version = state.epoch, state.intent_version
        self.headers = headers(self.operation_id, self.id, self.intent_version, self.epoch)
        self._effects = begun or Effects(owned, limits.owns)
        self._deciding = deciding or Deciding(owned)
        self.user_id = owned.row.user_id
        self.last_error = activity.last_error
        self.notes: Any = copy.deepcopy(activity.notes)
        self.checkpoint: Mapping[str, Any] = payload.decode(loads(owned.row.checkpoint)) or {}
        self.checkpoint_conflict: str | None = None
        self.approved: Mapping[str, Any] | None = approved_of(owned)
        self.versions: Mapping[str, str] = {}
        self._began_in = transaction_of(connections[owned.using])
        self._release: Behaviour | None = None
        self._journal: Journal | None = None
        self._tools: Tools | None = None
        node = owned.definition.nodes.get(activity.node) if owned.definition is not None else None
        if isinstance(node, AgentTurn):
            calling = calling or Calling(owned, self._effects)
            self._journal = Journal(owned, calling, self._deciding, limits.owns, self._extend)
            self._tools = Tools(node.tools, node.keep, self._journal, calling)

    @property
    def journal(self) -> Journal:
        """The calls of an agent turn: made once and on record, or their recorded answers.

        Raises:
            DefinitionError: the node is no AgentTurn.
        """
        if self._journal is None:
            raise DefinitionError(
                f"{self.flow}.{self.node} is no AgentTurn, so it has no journal: declare AgentTurn(do, choices=…) where a model and tools "
                "are called in turns."
            )
        return self._journal

    @property
    def tools(self) -> Tools:
        """The declared tools of an agent turn, to be called by name: `attempt.tools.call("read_file", {"path": "a.txt"})`.

        Raises:
            DefinitionError: the node is no AgentTurn.
        """
        assert self.journal is not None
        assert self._tools is not None
        return self._tools

    def effect(self, name: str, request: Any = None) -> AbstractContextManager[Call]:
        """One of several effects of this activity, declared as `effects={NAME: Effect(…)}`: in flight, committed, before the block begins.

            with attempt.effect("charge", request={"order": 7, "amount": "12.00"}) as op:
                op.call(provider.charge, 7, "12.00", headers=op.headers)   # made once; later attempts get the recorded answer

        Raises:
            LostOwnership: this worker does not own the workflow any more. DefinitionError: the node declares no such effect.
            CompetenceFailure: the same operation was asked for with another request. PayloadError: the request cannot be stored.
        """
        return self._effects.named(name, request)

    def record_model(self, model: str, **call: Any) -> None:
        """Say that a model was called; once for each call of this attempt of a Decision. Kept are hashes and numbers, never text.

        Args:
            model: its name. prompt, output: text, bytes or JSON, hashed here; or prompt_hash, output_hash.
            usage: input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens; cost, as text.

        Raises:
            PayloadError: anything else, such as a model's reasoning, is refused. DefinitionError: the node is no Decision.
        """
        self._deciding.record(model, call)

    @from_anywhere
    def context(
        self,
        *,
        max_tokens: int,
        extra: Mapping[str, Any] | None = None,
        nodes: Iterable[str] | None = None,
        without: Iterable[str] = (),
        item_bytes: int = ITEM_BYTES,
        tokens: Callable[[str], int] | None = None,
    ) -> Context:
        """What a model needs to know here, rebuilt from durable state: facts, and fenced text from outside, in one order and within a bound.

        Args:
            max_tokens: the hard bound. tokens: a function that counts a text's; without it a token is four bytes.
            extra: name → `Fact(…)` or `Untrusted(…)`, what your code knows besides (file outlines, revision history).
            nodes: only the results, events and answers of these nodes. without: sections that this decision does not need.
            item_bytes: the bound of one item, 4,000.

        Raises:
            PayloadError: an addition is not JSON, there is no such node or section, or the bound is too small for goal and decision alone.
        """
        return self._deciding.context(Wanted(max_tokens, extra, nodes, without, item_bytes, tokens), self.checkpoint_conflict)

    @property
    @from_anywhere
    def release(self) -> Behaviour | None:
        """The behavioural release that the run is pinned to, with the digests of its models, prompts, tools and policies; None: it has none."""
        if self._release is None and self._owned.row.release:
            self._release = behaviour(self._owned.row.release, self._owned.using)
        return self._release

    @from_anywhere
    def heartbeat(self) -> str:
        """Say that the work goes on: the timeout starts anew. Answers "continue", "cancel" (stop, clean up) or "lost" (stop at once)."""
        return self._beat(None)

    @from_anywhere
    def note(self, notes: Any) -> str:
        """Save a bounded note for the next attempt of this visit; it is also a heartbeat, with the same answers.

        Raises:
            PayloadError: the note is too large or not JSON; the previous one is kept.
        """
        text = payload.encode(notes, f"the note of {self.flow}.{self.node}", conf.MAX_NOTE_BYTES)
        self.notes = payload.decode(json.loads(text))
        return self._beat(text)

    @from_anywhere
    def save_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Replace the workflow's checkpoint: small, revision-level facts that the next turn needs to go on.

        Raises:
            CheckpointTooLarge: names the largest keys; the previous checkpoint is kept.
            LostOwnership: this worker does not own the workflow any more; stop.
        """
        definition = self._owned.definition
        bound = definition.checkpoint.max_bytes if definition else 16 * 1024
        text = payload.encode_checkpoint(checkpoint, f"the checkpoint of {self.flow}", bound)
        row = self._owned.row
        if not store.save_checkpoint(row.id, row.version, row.epoch, self._owned.worker, text, self._owned.using):
            raise LostOwnership(f"workflow {row.id} is no longer this worker's")
        row.checkpoint = text
        self.checkpoint = payload.decode(json.loads(text))

    @from_anywhere
    def spend(self, **used: Any) -> str:
        """Say what was used just now, `attempt.spend(model_tokens=812, cost="0.02")`: booked, durably, when this returns, limits or not.

        Answers "within", "soft" (over a soft limit) or "hard" (nothing is left: stop and return; the next attempt that needs some is
        refused). Of a kind of which an attempt says nothing, all that `spends=` set aside counts as used; `attempt.spend(model_calls=0)`
        says that it was none.

        Raises:
            LostOwnership: this worker does not own the workflow any more; stop. DefinitionError: there is no such kind, the amount is none,
            it is measured, or the call is inside a transaction.
        """
        return ledger.spend(self._owned, used, self._began_in)

    def items(self, node: str, *statuses: str) -> Items:
        """The items of a Map (branches of a Parallel or Child), all or of these statuses, in order; errors as `flows.services.items`."""
        return Items(self._owned.row.id, node, statuses, self._owned.using)

    @property
    @from_anywhere
    def budget(self) -> Mapping[str, Any]:
        """What this attempt may still use, by kind, as it is on record now: only kinds that are limited, its own reservation included."""
        return ledger.left(self._owned)

    def _extend(self) -> None:
        """Each call of an agent turn starts the timeout anew."""
        self._beat(None)

    def _beat(self, notes: str | None) -> str:
        row, activity = self._owned.row, self._owned.state.activity
        assert activity is not None
        if not self._limits.owns():
            return LOST
        status, mine = store.heartbeat(
            row.id, row.version, row.epoch, self._owned.worker, activity.seq, activity.fence, notes, self._owned.using
        )
        if mine:
            self._limits.extend(timeout_left(self._owned))
            return CONTINUE
        return CANCEL if status not in LIVE or status == Status.CANCELLING else LOST


def approved_of(owned: Owned) -> Mapping[str, Any] | None:
    """The frozen candidate that the node's gate stands on; None: it asks for no approval, or there is no sound one."""
    node = owned.definition.nodes.get(owned.state.node) if owned.definition else None
    if node is None or node.gate is None or not node.gate.approved_by:
        return None
    fact = owned.facts.approvals.get(node.gate.approved_by)
    return copy.deepcopy(dict(fact.candidate)) if fact and fact.sound else None


def timeout_left(owned: Owned) -> float:
    """Seconds that the open attempt has, from now."""
    node = owned.definition.nodes[owned.state.node] if owned.definition is not None else None
    assert isinstance(node, Activity) and owned.state.activity is not None
    return timeout_of(node, owned.state.activity.step)


__all__ = ["CANCEL", "CONTINUE", "LOST", "Attempt", "Limits", "approved_of", "timeout_left"]
