"""An operation as author code gets it, and where in its flow it is declared what can be asked and done about it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from django.db import connections

from flows import models, registry
from flows.core import payload
from flows.core.effects import TOOL, Askable, OperationKind
from flows.core.errors import DefinitionError
from flows.core.nodes.activity import Activity
from flows.core.nodes.base import Node
from flows.models import Commitment
from flows.services import ledger
from flows.services.authored import from_anywhere, transaction_of
from flows.services.owned import history_of
from flows.store import operations as store
from flows.store.load import load
from flows.store.operations import Row
from flows.store.sql import loads, run


def headers(operation: str, attempt: str, intent_version: int, epoch: int) -> dict[str, str]:
    """What to send along, so that a provider can tell a repetition from a second request, and refuse what comes too late."""
    return {
        "Idempotency-Key": operation,
        "Outlast-Attempt": attempt,
        "Outlast-Intent-Version": str(intent_version),
        "Outlast-Epoch": str(epoch),
    }


@dataclass(frozen=True)
class Operation:
    """One call to the outside world, as handed to `reconcile=`, `compensate=` and `release=`.

    Attributes:
        id: of this call; hand it to the provider as the idempotency key. kind: "effect", "compensation" or "release".
        request, evidence, external_id: what was recorded of it. tries: how often it was asked about (or called) until now.
        of: for a compensation, the effect that it mitigates; for a release, the effect that began the commitment.
        reference, terms: for a release, those of the commitment.
        flow, key, workflow_id, node, name, intent_version, epoch: whose it is.
    """

    id: str
    kind: str
    flow: str
    key: str | None
    workflow_id: str
    node: str
    name: str
    request: Any
    evidence: Any
    external_id: str
    tries: int
    attempt: int
    intent_version: int
    epoch: int
    of: Operation | None = None
    reference: str = ""
    terms: Any = None
    _using: str = field(default="default", repr=False)
    _began_in: object = field(default=(0, False), repr=False, compare=False)

    @property
    def headers(self) -> dict[str, str]:
        """The idempotency header and the fences of this call."""
        return headers(self.id, f"{self.id}#{self.attempt}", self.intent_version, self.epoch)

    @cached_property
    @from_anywhere
    def _recorded(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        (row,) = run("input", INPUT, {"id": self.workflow_id}, self._using)
        results, _ = history_of(load([row[0]], self._using).get(row[0]))
        return MappingProxyType(payload.decode(loads(row[1]))), MappingProxyType(results)

    @property
    def input(self) -> Mapping[str, Any]:
        """The workflow's input."""
        return copy.deepcopy(dict(self._recorded[0]))

    @property
    def results(self) -> Mapping[str, Any]:
        """The newest recorded result of each node."""
        return copy.deepcopy(dict(self._recorded[1]))

    @from_anywhere
    def spend(self, **used: Any) -> str:
        """Say what was used, as `Attempt.spend` does: booked at once, and never refused, for what is owed must be serviced. What a budget
        keeps is there for it. Answers and errors are the same, but that nothing is lost to another worker.
        """
        ledger.must_last(self._began_in, f"{self.node}, operation.spend", self._using)
        return ledger.spend_servicing(self.workflow_id, self.node, used, self._using)


INPUT = "SELECT id, input FROM outlast_workflow WHERE id = %(id)s::uuid"


def view(row: Row, using: str) -> Operation:
    """The recorded operation as author code gets it."""
    held = Commitment.objects.using(using).filter(pk=row.commitment_id).first() if row.commitment_id else None
    of_id = row.of_id or (held.operation_id if held is not None else None)
    of = store.get(of_id, using) if of_id else None
    return Operation(
        id=row.id,
        kind=row.kind,
        flow=row.flow_name,
        key=row.key,
        workflow_id=str(row.workflow_id),
        node=row.node,
        name=row.name,
        request=payload.decode(row.request),
        evidence=payload.decode(row.evidence),
        external_id=row.external_id,
        tries=row.tries,
        attempt=row.attempt,
        intent_version=row.intent_version,
        epoch=row.epoch,
        of=view(of, using) if of is not None else None,
        reference=held.reference if held is not None else "",
        terms=payload.decode(held.terms) if held is not None else None,
        _using=using,
        _began_in=transaction_of(connections[using]),
    )


def declared(row: Row) -> Askable | None:
    """What the flow declares about this operation; None where this process does not know the flow, or it declares nothing any more.

    A run that was migrated may have done what only the version of that time declares: where that is still loaded, it is asked.
    """
    return _declared_since(row.flow_name, row.flow_version, row)


def can_be_asked(row: Row | models.Operation) -> bool:
    """Whether a `reconcile` function is declared that can be asked what became of it."""
    flow = row if isinstance(row, Row) else row.workflow
    asked = _declared_since(flow.flow_name, flow.flow_version, row)
    return asked is not None and asked.reconcile is not None


def _declared_since(flow_name: str, flow_version: int, row: Row | models.Operation) -> Askable | None:
    loaded = registry.known().versions(flow_name)
    versions = sorted((version for version in loaded if version < flow_version), reverse=True)
    found = (_declared(loaded[version].nodes.get(row.node), row) for version in (flow_version, *versions) if version in loaded)
    return next((one for one in found if one is not None), None)


def _declared(node: Node | None, row: Row | models.Operation) -> Askable | None:
    if not isinstance(node, Activity):
        return None
    if row.kind == OperationKind.RELEASE:
        return next((one.servicing for one in node.commitments if one.name == row.name), None)
    if row.kind == OperationKind.COMPENSATION:
        effect = node.effect_named(row.name)
        return effect.compensation if effect is not None else None
    if row.name.startswith(TOOL):
        _load(node)
    return node.effect_named(row.name)


def _load(node: Activity) -> None:
    """Import the code of a node that is given by its path: a tool is known where the module that guards it is loaded."""
    for _parameter, function in node.functions():
        if isinstance(function, str) and function:
            with suppress(DefinitionError):
                registry.function(function)
