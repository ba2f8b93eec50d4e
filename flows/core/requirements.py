"""What a node's gate asks for, as an author declares it: `Gate`, and what it takes. Judged by `flows.core.gate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from flows.core import typed
from flows.core.errors import DefinitionError
from flows.core.policies import Deadline, Expiry
from flows.core.spans import bounded


@dataclass(frozen=True, slots=True)
class Fresh:
    """How fresh something outside must be before a node is carried out.

    Args:
        probe: called with the attempt; returns the present version of the thing, as text or as JSON.
        within: how old what was decided or checked on may be at most; None: any age, as long as the version is the same.
        reuse: a look that is younger than this is not repeated.
        then, to, escalate_to: as in `Deadline`: what happens when `within` is over while the node is still ahead; without `then`, nothing
            happens before the node's gate is asked.
    """

    probe: Callable[[Any], Any] | str
    within: timedelta | None = None
    reuse: timedelta = timedelta(0)
    then: str | Expiry = ""
    to: str = ""
    escalate_to: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        typed.span("Fresh(within=…)", self.within, "Fresh(probe, within=hours(4))", optional=True)
        typed.span("Fresh(reuse=…)", self.reuse, "Fresh(probe, reuse=seconds(60))")
        for what, given in (("within", self.within), ("reuse", self.reuse)):
            bounded(f"Fresh({what}=…)", given or timedelta(0))
        if self.within is not None and self.within <= timedelta(0):
            raise DefinitionError("Fresh(within=…) needs a span: Fresh(probe, within=hours(4)).")
        if self.reuse < timedelta(0):
            raise DefinitionError("Fresh(reuse=…) must not be negative.")
        if self.then and self.within is None:
            raise DefinitionError(
                'Fresh(then=…) says what happens when a span is over: Fresh(probe, within=hours(4), then="propose").'
            )
        if not self.then and (self.to or self.escalate_to):
            raise DefinitionError("Fresh(to=…) and Fresh(escalate_to=…) belong to a then=.")
        _ = self.deadline  # a policy that cannot be is said here

    @property
    def deadline(self) -> Deadline | None:
        """The budget as a deadline of its own, counted from each new baseline; None without `then`."""
        if not self.then or self.within is None:
            return None
        return Deadline(seconds=self.within.total_seconds(), then=self.then, to=self.to, escalate_to=self.escalate_to)


@dataclass(frozen=True, slots=True)
class Competence:
    """The envelope that a node works in: so many failed verifications of `of`, under one release, and a person is asked.

    Args:
        of: the node whose candidates are verified. errors: how many verifications may fail before the envelope is closed; one candidate that
            fails twice counts twice.
    """

    of: str
    errors: int

    def __post_init__(self) -> None:
        example = 'Competence("propose", errors=3)'
        typed.must("Competence(of, …)", self.of, (str,), example)
        typed.must("Competence(errors=…)", self.errors, (int,), example)
        if self.errors < 0:
            raise DefinitionError("Competence(errors=…) must not be negative.")


#: Option of a Gate that takes names → how one is written.
GATE_NAMES = {"verified_by": '"test"', "authority": '"repo.merge_change"', "placement": '"eu"', "commitments": '"window"'}


@dataclass(frozen=True, slots=True)
class Gate:
    """What must hold each time before a node is carried out.

    Args:
        approved_by: the approval node whose live approval of the exact current candidate is needed; it is used up by the node.
        verified_by: the node (or nodes) with `verifies=` whose newest verification of the exact current candidate must have passed.
        fresh: name → probe (a function of the attempt, or `Fresh(probe, within=…)`): what was decided on must still be so.
        authority: permissions that the accountable user must have now.
        competence: the envelope that must be open.
        placement: the labels of which the worker must offer one.
        commitments: names of commitments that must be active, and not over their deadline.
    """

    approved_by: str | None = None
    verified_by: str | tuple[str, ...] = ()
    fresh: Mapping[str, Fresh | Callable[[Any], Any] | str] = field(default_factory=dict)
    authority: str | tuple[str, ...] = ()
    competence: Competence | None = None
    placement: str | tuple[str, ...] = ()
    commitments: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for option, example in GATE_NAMES.items():
            object.__setattr__(
                self, option, typed.texts(f"Gate({option}=…)", getattr(self, option) or (), f"Gate({option}={example})")
            )
        typed.must(
            "Gate(competence=…)", self.competence, (Competence, typed.NONE), 'Gate(competence=Competence("propose", errors=3))'
        )
        typed.must("Gate(fresh=…)", self.fresh, (Mapping,), 'Gate(fresh={"main": head_of_main})')
        probes = {name: probe if isinstance(probe, Fresh) else Fresh(probe) for name, probe in self.fresh.items()}
        object.__setattr__(self, "fresh", probes)

    @property
    def probes(self) -> Mapping[str, Fresh]:
        """`fresh`, each as a `Fresh`."""
        return self.fresh  # type: ignore[return-value]

    @property
    def shape(self) -> Mapping[str, Any]:
        """What of it is structure: names, not functions or spans."""
        found = {
            "approved_by": self.approved_by,
            "verified_by": sorted(self.verified_by),
            "fresh": sorted(self.fresh),
            "authority": sorted(self.authority),
            "competence": self.competence.of if self.competence else None,
            "placement": sorted(self.placement),
            "commitments": sorted(self.commitments),
        }
        return {name: value for name, value in found.items() if value}
