"""Ask: people are asked for what only they know, by a typed form or an upload. The answer is evidence and authorises nothing (C6).

enter ──► request (form frozen, its digest, intent version) ──► answered once by one of those who are asked ──► `then`, or the route of a choice
                                                        └─ deadline ──► its policy; no answer is ever made up
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from flows.core import canonical, fields, payload
from flows.core.errors import DefinitionError
from flows.core.fields import Field
from flows.core.moves import Goto, Move, Park, Rest, Suspend
from flows.core.nodes.activity import qualified
from flows.core.nodes.audience import Escalation, Reviewers, ladder_digest, seconds_of
from flows.core.nodes.base import Node, need_text
from flows.core.nodes.expiry import deadline_target, expire, limits
from flows.core.nodes.waits import UNDECLARED_CHOICE
from flows.core.policies import Deadline, Visits
from flows.core.protocol import Outcome
from flows.core.state import State, Trigger

ASK_EXPIRED = "ASK_EXPIRED"

#: The one answer that it knows; an Approval has others.
ANSWERED = "answered"
MAX_WHY = 2000

Form = Sequence[Field] | Callable[[State], Sequence[Field]]


@dataclass(frozen=True)
class Ask(Node):
    """Ask somebody for a typed form or an upload. It authorises nothing: no gate takes its answer for an approval.

    Args:
        form: a list of `Field`, or a pure function of the state that gives one.
        why: text that tells people what it is for, or a pure function of the state that gives it.
        role, pool, permission, to: who may answer, as in `Reviewers`; one answer of one of them is enough.
        deadline: how long, and what then. then: the node that comes next; or
        route_by, choices: the name of a field of kind "choice", and value → node. An optional one that is not given leads to `then`.
        self_answer: whether the accountable user may answer too; they may, unless this is False.
        reminders, escalation: as of an Approval. visits: how often may be asked in all; default ten times, then a person must look.
    The node's result is `{"answer": {field: value}, "by", "request"}`; a file is `{"name", "size", "sha256", "content_type", "path"}`.
    """

    kind: ClassVar[str] = "ask"
    asks_people: ClassVar[bool] = True

    form: Form
    why: str | Callable[[State], str] = field(kw_only=True, default="")
    role: str = field(kw_only=True, default="")
    pool: str = field(kw_only=True, default="")
    permission: str = field(kw_only=True, default="")
    to: Callable[[State], str] | None = field(kw_only=True, default=None)
    deadline: Deadline | None = field(kw_only=True, default=None)
    then: str = field(kw_only=True, default="")
    route_by: str = field(kw_only=True, default="")
    choices: Mapping[str, str] = field(kw_only=True, default_factory=dict)
    self_answer: bool = field(kw_only=True, default=True)
    reminders: Sequence[timedelta] = field(kw_only=True, default=())
    escalation: Sequence[Escalation] = field(kw_only=True, default=())
    visits: Visits | None = field(kw_only=True, default=None)

    @property
    def own(self) -> Reviewers:
        """Whom it asks."""
        return Reviewers(self.role, pool=self.pool, permission=self.permission, to=self.to)

    @property
    def ladder(self) -> tuple[Reviewers, ...]:
        """The same as a ladder of one step."""
        return (self.own,)

    def enter(self, state: State) -> Move:
        step = self.own.frozen(state)
        return Park(
            self.name,
            self.kind,
            f"waiting for an answer of {step['name']}",
            **limits(self.deadline, state),
            detail={
                "candidate": self._asked(state),
                "steps": [step],
                "escalation": [one.frozen for one in self.escalation],
                "reminders": seconds_of(self.reminders),
                "bulk": False,
                "subset": "",
                **self.question,
            },
        )

    @property
    def question(self) -> Mapping[str, Any]:
        """Whom it asks, in the words of an Approval's question; the form is what stands there in place of a candidate."""
        return {
            "candidate_node": self.name,
            "ladder": ladder_digest(self.ladder, self.escalation, self.name),
            "answers": [ANSWERED],
            "self_approval": self.self_answer,
        }

    def _asked(self, state: State) -> Mapping[str, Any]:
        """The form as it is asked, with its digest: an answer names it, so that one to another form is told apart."""
        why: Any = self.why(state) if callable(self.why) else self.why
        if not isinstance(why, str) or len(why) > MAX_WHY or not payload.is_text(why):
            raise DefinitionError(
                f"why= of ask {self.name} has to give text of at most {MAX_WHY} characters, without NUL; it gave {why!r:.80}."
            )
        given = self.form(state) if callable(self.form) else self.form
        found = fields.sound(given, f"The form of ask {self.name}")
        if fault := self.misrouted(found):
            raise DefinitionError(f"Ask {self.name} {fault}")
        body = {"choice": "", "value": {"why": why, "fields": [one.frozen for one in found]}}
        digest = canonical.digest(body, f"the form of {self.name}")
        return {**body, "evidence": None, "digest": digest, "revision": state.visits.get(self.name, 0) + 1}

    def misrouted(self, form: Sequence[Field]) -> str:
        """Why some answer to this form would lead nowhere; "": each leads somewhere."""
        if not self.route_by:
            return ""
        by = next((one for one in form if one.name == self.route_by), None)
        if by is None or by.kind != "choice":
            return f'has route_by={self.route_by!r}, which is no field of kind "choice" of its form.'
        if missing := [value for value, _ in by.offered if value not in self.choices]:
            return f"has no route for the choice {missing[0]!r} of {self.route_by}."
        if not by.required and not self.then:
            return f"has no then= for an answer without {self.route_by}, which is optional."
        return ""

    def resume(self, state: State, trigger: Trigger) -> Move:
        wait = state.wait
        if wait is None:
            return self.enter(state)
        if wait.evidence is not None:
            return self._answered(wait.evidence)
        if wait.due and self.deadline is not None:
            return expire(self.deadline, self.name, ASK_EXPIRED)
        return Rest()

    def _answered(self, evidence: Mapping[str, Any]) -> Move:
        if not self.route_by:
            return Goto(self.then)
        value = evidence["answer"].get(self.route_by)
        target = self.then if value is None else self.choices.get(value)
        if not target:
            return Suspend(self.name, Outcome.HUMAN_REQUIRED, UNDECLARED_CHOICE, "the answer is not a declared one")
        return Goto(target)

    def result(self, state: State) -> Any:
        """The node's result: what was answered, and by whom."""
        return dict(state.wait.evidence) if state.wait and state.wait.evidence is not None else None

    def targets(self) -> Iterator[tuple[str, str]]:
        for choice, target in self.choices.items():
            yield choice, need_text(target, "choices=")
        if self.then or not self.choices:
            yield "", need_text(self.then, "then=")
        yield from deadline_target(self.deadline)
        yield from super().targets()

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield from super().functions()
        yield "form", self.form if callable(self.form) else None
        yield "why", self.why if callable(self.why) else None
        yield "to", self.to

    def shape(self) -> Mapping[str, Any]:
        """What is asked for, by name and kind; its words may change under a run."""
        asks = qualified(self.form) if callable(self.form) else [[one.name, one.kind] for one in self.form]
        return {**super().shape(), "form": asks, "route_by": self.route_by, "ladder": self.question["ladder"]}


__all__ = ["ANSWERED", "ASK_EXPIRED", "Ask"]
