"""The gate: may this workflow take its next consequential step? Pure functions over recorded facts (H1).

    base.py      intent, policy, definition, release                     at every wake-up and claim
    bound.py     candidate, approval, verification, commitments          before a node with `gate=` is entered (what can be known then),
    outside.py   fresh, competence, authority, budget, placement         and all of them when an attempt passes (docs/decisions/0004)

A check says which facts it looks at (None: it is not asked of this node, or not yet) and judges them. The first refusal is the verdict.
A check whose facts are those for which it held when the node last passed is not run again. What a probe or a provider says is looked up at every
wake-up (a probe's `reuse=` apart): a right that was taken away is on no record of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from flows.core import canonical
from flows.core.definition import Definition
from flows.core.gate import base, bound, outside
from flows.core.gate.check import Answer, Asked, Check, Known, Refusal
from flows.core.nodes.base import Node
from flows.core.state import Facts, State

#: The order in which they are asked: what makes the others pointless comes first, what costs a person's time last.
CHECKS: tuple[Check, ...] = (*base.CHECKS, *bound.CHECKS, *outside.CHECKS)

HOLDS, REFUSED, UNCHANGED = "holds", "refused", "unchanged"


@dataclass(frozen=True, slots=True)
class Examined:
    """A verdict with all that led to it. `refusal` None is ALLOWED."""

    refusal: Refusal | None
    answers: tuple[Answer, ...]


def check(definition: Definition, node: Node | None, state: State, facts: Facts) -> Refusal | None:
    """The first refusal, or None for ALLOWED. `node` is the one to be entered or carried out; None asks the base checks only."""
    if node is not None:
        return examine(definition, node, state, facts).refusal
    asked = Asked(definition, None, state, facts)
    for one in base.CHECKS:
        known = one.facts(asked)
        if known is not None and (refusal := one.judge(known)) is not None:
            return _of(asked, refusal, ())
    return None


def examine(definition: Definition, node: Node, state: State, facts: Facts) -> Examined:
    """The answer for a node, with each check's part in it."""
    asked = Asked(definition, node, state, facts)
    held = facts.look.held if facts.look is not None else {}
    answers: list[Answer] = []
    for one, known, digest in _known(asked):
        if held.get(one.name) == digest:
            answers.append(Answer(one.name, UNCHANGED, digest))
            continue
        refusal = one.judge(known)
        answers.append(Answer(one.name, HOLDS if refusal is None else REFUSED, digest))
        if refusal is not None:
            return Examined(_of(asked, refusal, tuple(answers)), tuple(answers))
    return Examined(None, tuple(answers))


def digests(definition: Definition, node: Node, state: State, facts: Facts) -> dict[str, str]:
    """Check → the digest of the facts that it looks at; those that are not asked are not in it."""
    return {one.name: digest for one, _, digest in _known(Asked(definition, node, state, facts))}


def _of(asked: Asked, refusal: Refusal, answers: tuple[Answer, ...]) -> Refusal:
    return replace(refusal, node=asked.node.name if asked.node is not None else asked.state.node, answers=answers)


def _known(asked: Asked) -> Iterator[tuple[Check, Known, str]]:
    for one in CHECKS:
        known = one.facts(asked)
        if known is not None:
            yield one, known, canonical.digest(known, f"the facts of {one.name}").removeprefix("sha256:")[:16]


__all__ = ["CHECKS", "Answer", "Asked", "Check", "Examined", "Refusal", "check", "examine"]
