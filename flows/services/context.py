"""The bounded context of an attempt: durable state, read anew, as sections for the pure core; never a transcript (O2).

What the runtime or the flow's own code has recorded as such (goal, node, choices, digests, statuses) are facts. Everything that somebody
else may have written (results, events, comments, references, what a probe saw) is fenced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flows.core import context as core
from flows.core import payload
from flows.core.context import Context, Item, Section, Tokens
from flows.core.errors import PayloadError
from flows.core.nodes.activity import WORKER_LOST, Decision
from flows.core.nodes.approval import Approval
from flows.core.nodes.ask import Ask
from flows.core.nodes.waits import Wait
from flows.services.owned import Owned
from flows.store import context as store

ITEM_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an author asks for; see `Attempt.context`."""

    max_tokens: int
    extra: Mapping[str, Any] | None = None
    nodes: Iterable[str] | None = None
    without: Iterable[str] = ()
    item_bytes: int = ITEM_BYTES
    tokens: Tokens | None = None


def context_of(owned: Owned, wanted: Wanted, conflict: str | None) -> Context:
    """The context of the running attempt.

    Raises:
        PayloadError: an addition is not JSON, `nodes` or `without` names what there is not, or `max_tokens` is too small.
    """
    row, activity = owned.row, owned.state.activity
    assert activity is not None
    producer = f"the context of {owned.label}"
    _check(wanted, producer)
    name, _, version = row.policy_version.rpartition("@")
    record = store.read(row.id, activity.seq, activity.node, name, int(version) if version.isdecimal() else 0, owned.using)
    answers, events, results = _history(owned, record, _named(owned, wanted.nodes, producer))
    sections = (
        Section("goal", tuple(_goal(owned, record))),
        Section("decision", tuple(_decision(owned, record))),
        Section("policy", (core.fact(row.policy_version, record.policy),) if record.policy is not None else ()),
        Section("checkpoint", tuple(_checkpoint(record, conflict))),
        Section("commitments", tuple(_commitments(record))),
        Section("input", (core.outside("input", dict(owned.state.input), "the start of the workflow"),)),
        Section("answers", tuple(answers)),
        Section("extra", core.author_items(wanted.extra or {}, producer)),
        Section("observations", tuple(core.outside(name, seen, f"probe:{name}") for name, seen in record.observations)),
        Section("events", tuple(events)),
        Section("results", tuple(results)),
    )
    left = _left(wanted.without, producer)
    return core.build(
        [section for section in sections if section.name not in left],
        max_tokens=wanted.max_tokens,
        item_bytes=wanted.item_bytes,
        tokens=wanted.tokens or core.estimated,
        producer=producer,
    )


def _check(wanted: Wanted, producer: str) -> None:
    """What an author passes may be anything."""
    extra: Any = wanted.extra
    if not isinstance(extra, Mapping | None):
        raise PayloadError(producer, f'extra= takes values by name: extra={{"diff": Untrusted(diff)}}; got {extra!r:.60}')
    if not callable(wanted.tokens or core.estimated):
        raise PayloadError(producer, f"tokens= is a function that counts the tokens of a text; got {wanted.tokens!r:.60}")


def _named(owned: Owned, nodes: Iterable[str] | None, producer: str) -> frozenset[str] | None:
    if nodes is None:
        return None
    assert owned.definition is not None
    names = _names(nodes, "nodes", producer)
    if unknown := names - set(owned.definition.nodes):
        raise PayloadError(producer, f"nodes= names {', '.join(sorted(map(repr, unknown)))}, and the flow has no such node")
    return names


def _left(without: Iterable[str], producer: str) -> frozenset[str]:
    names = _names(without, "without", producer)
    free = frozenset(core.ORDER) - core.KEPT
    if names - free:
        listed = ", ".join(sorted(map(repr, names - free)))
        raise PayloadError(producer, f"without= names {listed}; {', '.join(sorted(free))} can be left out")
    return names


def _names(given: Any, option: str, producer: str) -> frozenset[str]:
    found = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(one, str) for one in found):
        raise PayloadError(producer, f'{option}= takes names, as text: {option}=["…"]; got {given!r:.60}')
    return frozenset(found)


def _goal(owned: Owned, record: store.Record) -> Iterable[Item]:
    yield core.fact("goal", record.goal)
    bound = owned.state.intent_version
    current = record.intent_status if record.intent_version == bound else f"superseded by version {record.intent_version}"
    yield core.fact("intent", {"version": bound, "status": current})


def _decision(owned: Owned, record: store.Record) -> Iterable[Item]:
    activity, definition = owned.state.activity, owned.definition
    assert activity is not None and definition is not None
    step = {"step": activity.step} if activity.step else {}
    yield core.fact(
        "node", {"flow": definition.name, "version": definition.version, "node": activity.node, **step, "visit": activity.visit}
    )
    node = definition.nodes[activity.node]
    if isinstance(node, Decision):
        yield core.fact("choices", list(node.choices))
    if activity.last_error and activity.last_error != WORKER_LOST:  # the death of a worker is no news to a model
        yield core.fact("last_error", activity.last_error)
    if record.earlier:
        names = ("revision", "choice", "digest", "refused")
        earlier = [{name: value for name, value in zip(names, one, strict=True) if value} for one in record.earlier]
        yield core.fact("earlier_candidates", earlier)


def _checkpoint(record: store.Record, conflict: str | None) -> Iterable[Item]:
    if conflict:
        yield core.fact("conflict", conflict)
    if record.checkpoint is not None:
        yield core.outside("checkpoint", payload.decode(record.checkpoint), "the checkpoint")
    if record.notes is not None:
        yield core.outside("notes", payload.decode(record.notes), "an earlier attempt")


def _commitments(record: store.Record) -> Iterable[Item]:
    for name, kind, status, reference, deadline in record.commitments:
        yield core.fact(name, {"kind": kind, "status": status, **({"deadline": deadline} if deadline else {})})
        if reference:
            yield core.outside(f"{name}.reference", reference, f"commitment:{name}")


def _history(owned: Owned, record: store.Record, names: frozenset[str] | None) -> tuple[list[Item], list[Item], list[Item]]:
    """Answers of people, events, and results of activities: of each node the newest, and the newest first."""
    definition, known = owned.definition, owned.state.results
    assert definition is not None
    answers: list[Item] = []
    events: list[Item] = []
    results: list[Item] = []
    for name in (*record.answered, *record.done):
        if name not in known or (names is not None and name not in names):
            continue
        node, result = definition.nodes.get(name), known[name]
        if isinstance(node, Approval) and isinstance(result, Mapping):
            answers.append(core.fact(name, {key: result[key] for key in ("answer", "digest") if key in result}))
            if result.get("comment"):
                answers.append(core.outside(f"{name}.comment", str(result["comment"]), "reviewer"))
        elif isinstance(node, Ask) and isinstance(result, Mapping):
            answers.append(core.outside(name, result.get("answer"), "person"))
        elif isinstance(node, Wait):
            event = result if isinstance(result, Mapping) else {"payload": result}
            shown = {key: event[key] for key in ("value", "payload") if key in event}
            if shown.get("value") == shown.get("payload"):
                shown.pop("value", None)
            events.append(core.outside(name, shown, f"event:{node.event} {event.get('event', '')}".strip()))
        elif isinstance(node, Decision) and isinstance(result, Mapping) and "value" in result:
            shown = {key: result[key] for key in ("choice", "value") if key in result}
            results.append(core.outside(name, shown, f"decision:{name}"))
        else:
            results.append(core.outside(name, result, f"activity:{name}"))
    return answers, events, results
