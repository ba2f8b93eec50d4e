"""Approval: people are asked about one exact candidate. Who answers, how many of them and in which order is a ladder of steps (F3 to F5).

`need` people of a step approve, then the next step that applies is asked. A no, or a wish for changes, of any of them ends the request at once.
Nobody counts twice in one request. Reminders and escalations are moments after it was made; neither answers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from flows.core.errors import DefinitionError
from flows.core.moves import Goto, Move, Park, Rest, Suspend
from flows.core.nodes.activity import candidate_of
from flows.core.nodes.audience import Escalation, Reviewers, ladder_digest, seconds_of
from flows.core.nodes.base import Node, need_text
from flows.core.nodes.expiry import deadline_target, expire, limits
from flows.core.nodes.waits import UNDECLARED_CHOICE
from flows.core.policies import Deadline, Visits
from flows.core.protocol import Outcome
from flows.core.state import State, Trigger

APPROVAL_EXPIRED = "APPROVAL_EXPIRED"
CANDIDATE_MISSING = "CANDIDATE_MISSING"
NOBODY_ELIGIBLE = "NOBODY_ELIGIBLE"


@dataclass(frozen=True)
class Approval(Node):
    """Ask people about one exact candidate. The answer is bound to the candidate's digest; expiry never approves.

    Args:
        candidate: the node whose candidate is asked about. role, pool, permission, to, need: who may answer, and how many must approve, as in
            `Reviewers`; or
        steps: several of these in order, `[Reviewers("developers", need=2), Reviewers("lawyers", when=is_large)]`.
        self_approval: whether the accountable user may answer too.
        subset: a list in the candidate's value, by its name, of which reviewers may keep a part: that is a new candidate, with a digest of its
            own, which is asked about anew.
        reminders: moments after the request was made at which those who may answer are reminded: `[hours(4), hours(20)]`.
        escalation: who may answer too after a while: `[Escalation("managers", hours=8)]`.
        expires: how long the request lives, and what then.
        bulk: whether several such requests may be approved at once, by a selection (denied they always may be).
        approved, changes, denied: the node for each answer; without `changes` reviewers cannot ask for changes.
        visits: how often may be asked in all; default ten times, then a person must look.
    The node's result is `{"answer", "comment", "by", "digest", "request"}`; `by` is who gave the last answer.
    """

    kind: ClassVar[str] = "approval"
    asks_people: ClassVar[bool] = True

    candidate: str = field(kw_only=True)
    role: str = field(kw_only=True, default="")
    pool: str = field(kw_only=True, default="")
    permission: str = field(kw_only=True, default="")
    to: Callable[[State], str] | None = field(kw_only=True, default=None)
    need: int = field(kw_only=True, default=1)
    steps: Sequence[Reviewers] = field(kw_only=True, default=())
    expires: Deadline | None = field(kw_only=True, default=None)
    reminders: Sequence[timedelta] = field(kw_only=True, default=())
    escalation: Sequence[Escalation] = field(kw_only=True, default=())
    bulk: bool = field(kw_only=True, default=False)
    approved: str = field(kw_only=True)
    denied: str = field(kw_only=True)
    changes: str = field(kw_only=True, default="")
    subset: str = field(kw_only=True, default="")
    self_approval: bool = field(kw_only=True, default=False)
    visits: Visits | None = field(kw_only=True, default=None)

    @property
    def ladder(self) -> tuple[Reviewers, ...]:
        """The steps as declared; one made of the node's own options where none are."""
        return tuple(self.steps) or (self.own,)

    @property
    def own(self) -> Reviewers:
        """The step that the node's own options name."""
        return Reviewers(self.role, pool=self.pool, permission=self.permission, to=self.to, need=self.need)

    def enter(self, state: State) -> Move:
        candidate = self.about(state)
        if candidate is None:
            return Suspend(self.name, Outcome.HUMAN_REQUIRED, CANDIDATE_MISSING, f"{self.candidate} has no result to ask about")
        steps = [step.frozen(state) for step in self.ladder if step.when is None or step.when(state)]
        if not steps:
            raise DefinitionError(f"No step of approval {self.name} applies, so nobody would be asked.")
        return Park(
            self.name,
            self.kind,
            f"waiting for an answer of {steps[0]['name']}",
            **limits(self.expires, state),
            detail={
                "candidate": candidate,
                "steps": steps,
                "escalation": [one.frozen for one in self.escalation],
                "reminders": seconds_of(self.reminders),
                "bulk": self.bulk,
                "subset": self.subset,
                **self.question,
            },
        )

    def about(self, state: State) -> Mapping[str, Any] | None:
        """The candidate that is asked about: what the node proposed, or the part of it that a reviewer has kept."""
        candidate = candidate_of(state, self.candidate)
        kept = _kept(state, self.name)
        if candidate is None or kept is None or kept["of"] != candidate["digest"]:
            return candidate
        return {**kept["candidate"], "evidence": candidate.get("evidence")}

    @property
    def question(self) -> Mapping[str, Any]:
        """What is asked of whom, but for the candidate. `ladder`: the digest of the steps and the escalation, as declared."""
        answers = [answer for answer in ("approved", "changes", "denied") if getattr(self, answer)]
        return {
            "candidate_node": self.candidate,
            "ladder": ladder_digest(self.ladder, self.escalation, self.name),
            "answers": [*answers, "narrowed"] if self.subset else answers,
            "self_approval": self.self_approval,
        }

    def resume(self, state: State, trigger: Trigger) -> Move:
        wait = state.wait
        if wait is None:
            return self.enter(state)
        if wait.evidence is not None:
            narrowed = self.name if self.subset else ""  # what was kept is asked about
            routes = {"approved": self.approved, "changes": self.changes, "denied": self.denied, "narrowed": narrowed}
            target = routes.get(str(wait.evidence.get("answer")))
            if not target:
                return Suspend(self.name, Outcome.HUMAN_REQUIRED, UNDECLARED_CHOICE, "the answer is not a declared one")
            return Goto(target)
        if wait.due and self.expires is not None:
            return expire(self.expires, self.name, APPROVAL_EXPIRED)
        return Rest()

    def result(self, state: State) -> Any:
        """The node's result: who answered what about which digest; where a part was kept, `kept`: that candidate, and of which it is a part."""
        if state.wait is None or state.wait.evidence is None:
            return None
        answer, kept = dict(state.wait.evidence), _kept(state, self.name)
        part = answer.pop("candidate", None)
        again = kept is not None and kept["candidate"]["digest"] == answer.get("digest")
        if part is not None:
            answer["kept"] = {"of": kept["of"] if kept is not None and again else answer.get("digest"), "candidate": part}
        elif kept is not None and again and answer.get("answer") == "approved":
            answer["kept"] = kept
        return answer

    def targets(self) -> Iterator[tuple[str, str]]:
        yield "approved", need_text(self.approved, "approved=")
        yield "denied", need_text(self.denied, "denied=")
        if self.changes:
            yield "changes", self.changes
        if self.subset:
            yield "narrowed", self.name
        yield from deadline_target(self.expires)
        yield from super().targets()

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield from super().functions()
        yield "to", self.to
        for number, step in enumerate(self.steps, 1):
            yield f"when of step {number}", step.when
            yield f"to of step {number}", step.to

    def shape(self) -> Mapping[str, Any]:
        """An approval of a single role looks as it did before there were ladders: runs that wait at one are not cut off."""
        ladder = self.ladder
        plain = ladder == (Reviewers(ladder[0].role),) and not self.escalation
        asks = {"role": ladder[0].role} if plain else {"ladder": self.question["ladder"]}
        return {**super().shape(), "candidate": self.candidate, **asks}


def _kept(state: State, name: str) -> Mapping[str, Any] | None:
    """The part that a reviewer of this node has kept, as its newest result says."""
    result = state.results.get(name)
    kept = result.get("kept") if isinstance(result, Mapping) else None
    return kept if isinstance(kept, Mapping) else None


__all__ = ["APPROVAL_EXPIRED", "CANDIDATE_MISSING", "NOBODY_ELIGIBLE", "Approval"]
