"""Approval: people are asked about one exact candidate. Who answers, how many of them and in which order is a ladder of steps (F3 to F5).

Each step names who may answer: members of a role (a Django group), of a pool, holders of a permission; all that it names. `need` of them approve, then the
next step that applies is asked. A no, or a wish for changes, of any of them ends the request at once. Nobody counts twice in one request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from flows.core import canonical
from flows.core.errors import DefinitionError
from flows.core.moves import Goto, Move, Park, Rest, Suspend
from flows.core.nodes.activity import candidate_of, qualified
from flows.core.nodes.base import Node, need_text
from flows.core.nodes.waits import UNDECLARED_CHOICE, deadline_target, expire
from flows.core.policies import Deadline, Visits
from flows.core.protocol import Outcome
from flows.core.state import State, Trigger

APPROVAL_EXPIRED = "APPROVAL_EXPIRED"
CANDIDATE_MISSING = "CANDIDATE_MISSING"
MAX_STEPS = 20


@dataclass(frozen=True)
class Reviewers:
    """One step of the ladder: who may answer, and how many of them must approve.

    Args:
        role: a Django group. pool: a pool of reviewers. permission: "app.codename". At least one; who answers is in all that are named.
        need: how many people must approve here. when: pure function of the state: whether this step applies; default always.
        name: what reviewers are shown; default: whom it asks.
    """

    role: str = ""
    pool: str = field(kw_only=True, default="")
    permission: str = field(kw_only=True, default="")
    need: int = field(kw_only=True, default=1)
    when: Callable[[State], Any] | None = field(kw_only=True, default=None)
    name: str = field(kw_only=True, default="")

    @property
    def whom(self) -> str:
        """Whom it asks, in words."""
        return " and ".join(one for one in (self.role, self.pool and f"pool {self.pool}", self.permission) if one)

    @property
    def frozen(self) -> dict[str, Any]:
        """As it is kept with a request."""
        return {
            "name": self.name or self.whom,
            "role": self.role,
            "pool": self.pool,
            "permission": self.permission,
            "need": self.need,
        }

    @property
    def shape(self) -> dict[str, Any]:
        """What of it makes another question: with a condition, its name and not its code."""
        return {**self.frozen, "when": qualified(self.when) if self.when is not None else ""}


@dataclass(frozen=True)
class Approval(Node):
    """Ask people about one exact candidate. The answer is bound to the candidate's digest; expiry never approves.

    Args:
        candidate: the node whose candidate is asked about. role, pool, permission, need: who may answer, and how many must approve; or
        steps: several of these in order, `Reviewers(…)`. self_approval: whether the accountable user may answer too.
        expires: how long the request lives, and what then.
        approved, changes, denied: the node for each answer; without `changes` reviewers cannot ask for changes.
        visits: how often may be asked in all; default ten times, then a person must look.
    The node's result is `{"answer", "comment", "by", "digest", "request"}`; `by` is who gave the last answer.
    """

    kind: ClassVar[str] = "approval"

    candidate: str = field(kw_only=True)
    role: str = field(kw_only=True, default="")
    pool: str = field(kw_only=True, default="")
    permission: str = field(kw_only=True, default="")
    need: int = field(kw_only=True, default=1)
    steps: Sequence[Reviewers] = field(kw_only=True, default=())
    expires: Deadline | None = field(kw_only=True, default=None)
    approved: str = field(kw_only=True)
    denied: str = field(kw_only=True)
    changes: str = field(kw_only=True, default="")
    self_approval: bool = field(kw_only=True, default=False)
    visits: Visits | None = field(kw_only=True, default=None)

    @property
    def ladder(self) -> tuple[Reviewers, ...]:
        """The steps as declared; one made of the node's own options where none are."""
        return tuple(self.steps) or (Reviewers(self.role, pool=self.pool, permission=self.permission, need=self.need),)

    def enter(self, state: State) -> Move:
        candidate = candidate_of(state, self.candidate)
        if candidate is None:
            return Suspend(self.name, Outcome.HUMAN_REQUIRED, CANDIDATE_MISSING, f"{self.candidate} has no result to ask about")
        steps = [step for step in self.ladder if step.when is None or step.when(state)]
        if not steps:
            raise DefinitionError(f"No step of approval {self.name} applies, so nobody would be asked.")
        return Park(
            self.name,
            self.kind,
            f"waiting for an answer of {steps[0].whom}",
            deadline=self.expires.after if self.expires else None,
            on_expiry=self.expires.word if self.expires else "",
            detail={"candidate": candidate, "steps": [step.frozen for step in steps], **self.question},
        )

    @property
    def question(self) -> Mapping[str, Any]:
        """What is asked of whom, but for the candidate. `policy`: the digest of the ladder as declared."""
        return {
            "candidate_node": self.candidate,
            "policy": canonical.digest([step.shape for step in self.ladder], f"the steps of {self.name}"),
            "answers": [answer for answer in ("approved", "changes", "denied") if getattr(self, answer)],
            "self_approval": self.self_approval,
        }

    def resume(self, state: State, trigger: Trigger) -> Move:
        wait = state.wait
        if wait is None:
            return self.enter(state)
        if wait.evidence is not None:
            target = {"approved": self.approved, "changes": self.changes, "denied": self.denied}.get(
                str(wait.evidence.get("answer"))
            )
            if not target:
                return Suspend(self.name, Outcome.HUMAN_REQUIRED, UNDECLARED_CHOICE, "the answer is not a declared one")
            return Goto(target)
        if wait.due and self.expires is not None:
            return expire(self.expires, self.name, APPROVAL_EXPIRED)
        return Rest()

    def result(self, state: State) -> Any:
        """The node's result: who answered what about which digest."""
        return dict(state.wait.evidence) if state.wait and state.wait.evidence is not None else None

    def targets(self) -> Iterator[tuple[str, str]]:
        yield "approved", need_text(self.approved, "approved=")
        yield "denied", need_text(self.denied, "denied=")
        if self.changes:
            yield "changes", self.changes
        yield from deadline_target(self.expires)
        yield from super().targets()

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        for number, step in enumerate(self.steps, 1):
            yield f"when of step {number}", step.when

    def shape(self) -> Mapping[str, Any]:
        ladder = self.ladder
        one = {"role": ladder[0].role} if ladder == (Reviewers(ladder[0].role),) else {"steps": [step.shape for step in ladder]}
        return {**super().shape(), "candidate": self.candidate, **one}


__all__ = ["APPROVAL_EXPIRED", "CANDIDATE_MISSING", "Approval", "Reviewers"]
