"""Child: one other flow, as a run of its own, waited for or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from flows.core import payload
from flows.core.errors import DefinitionError
from flows.core.joins import ABANDON, CANCELLED, REQUEST, OnCancel
from flows.core.moves import Goto, Move, Suspend
from flows.core.nodes.base import need_text
from flows.core.nodes.expiry import deadline_target
from flows.core.nodes.fanned import CHILD_FAILED, Fanned, Planned, Pure, as_flow, object_of
from flows.core.protocol import Outcome
from flows.core.state import State


@dataclass(frozen=True)
class Child(Fanned):
    """Run another flow.

    Args:
        child: the flow: its class, or its name. input: a pure function of the state that gives its input; without it, the run's own.
        key: a pure function of the state that gives its key. wait: whether this run waits for its end (default).
        completed, failed, cancelled: the next node by how it ended; cancelled defaults to failed. With `wait=False`: `then`, at once; its end
            then is the event `workflow.ended` with the child's id as key.
        on_cancel: as of every node that waits for children; with `wait=False` the default is ABANDON.
    The node's result is `{"id", "status", "outcome", "code", "result"}`; with `wait=False` it is `{"id"}`.
    """

    form: ClassVar[str] = "child"
    code: ClassVar[str] = CHILD_FAILED

    child: Any
    input: Pure | None = field(kw_only=True, default=None)
    key: Callable[[State], str] | str | None = field(kw_only=True, default=None)
    wait: bool = field(kw_only=True, default=True)
    completed: str = field(kw_only=True, default="")
    cancelled: str = field(kw_only=True, default="")
    on_cancel: OnCancel | None = field(kw_only=True, default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        as_flow(self.child)
        if self.on_cancel is None:
            object.__setattr__(self, "on_cancel", REQUEST if self.wait else ABANDON)
        if self.wait and self.then and self.completed:
            raise DefinitionError("Child leads on by completed=, failed= and cancelled=; then= is for wait=False.")
        if not self.wait and (self.completed or self.failed or self.cancelled or self.deadline):
            raise DefinitionError("Child(wait=False) goes on at once, by then=; its end comes as an event (On.ended).")

    @property
    def awaited(self) -> bool:
        return self.wait

    def planned(self, state: State) -> Sequence[Planned]:
        key = self.key(state) if callable(self.key) else self.key
        if key is not None and not payload.is_name(key):
            raise DefinitionError(
                f"The key of child {self.name} must be text that is not empty, of at most {payload.MAX_NAME} characters, got {key!r:.80}."
            )
        given = self.input(state) if self.input else dict(state.input)
        return [Planned("", object_of(given, f"The input of child {self.name}"), key)]

    def flows(self) -> Mapping[str, Any]:
        return {"": self.child}

    def answered(self, evidence: Mapping[str, Any]) -> Move:
        if not self.wait:
            return Goto(self.then)
        status = self.told(evidence).get("status")
        if status == CANCELLED and self.cancelled:
            return Goto(self.cancelled)
        return super().answered(evidence) if evidence.get("verdict") == "failed" else Goto(self.completed or self.then)

    def unrouted(self) -> Move:
        return Suspend(self.name, Outcome.HUMAN_REQUIRED, self.code, "its child has not completed")

    def told(self, evidence: Mapping[str, Any]) -> Any:
        return dict(evidence.get("branches", {}).get("", {}))

    def targets(self) -> Iterator[tuple[str, str]]:
        yield (
            ("completed" if self.completed else ""),
            need_text(self.completed or self.then, "completed=" if self.wait else "then="),
        )
        for label, target in (("failed", self.failed), ("cancelled", self.cancelled)):
            if target:
                yield label, need_text(target, f"{label}=")
        yield from deadline_target(self.deadline)
        yield from super(Fanned, self).targets()

    def functions(self) -> Iterator[tuple[str, Callable[..., Any] | str | None]]:
        yield "input", self.input
        yield "key", self.key if callable(self.key) else None
