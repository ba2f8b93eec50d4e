"""Fanned: a node that waits for children. Each branch of it is a child workflow; Map, Parallel and Child are its faces.

    enter ──► what is to be started, as data ──► park (the plane writes the fan) ──► children … ──► joined: the evidence says how
Nothing here starts or counts anything (`flows.services.children`); this is what is declared, and where it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

from flows.core import canonical
from flows.core.errors import DefinitionError, Failure
from flows.core.joins import FAILED, REQUEST, Losers, OnCancel
from flows.core.moves import Finish, Goto, Move, Park, Rest, Suspend
from flows.core.nodes.activity import Activity
from flows.core.nodes.base import Node, need_text
from flows.core.nodes.expiry import WAIT_EXPIRED, deadline_target, expire, limits
from flows.core.nodes.plain import COMPLETE, End
from flows.core.policies import CANCEL, Deadline, Expiry
from flows.core.protocol import Outcome, Status
from flows.core.state import State, Trigger

CHILDREN = "children"
ITEMS_FAILED = "ITEMS_FAILED"
CHILD_FAILED = "CHILD_FAILED"

#: The two nodes of the flow that is made for a function.
DO, DONE = "do", "done"


class Planned(NamedTuple):
    """One branch that is to be started: its name ("" of an item), its input, and the key that its run gets, if any."""

    name: str
    input: Mapping[str, Any]
    key: str | None = None


@dataclass(frozen=True)
class Item(Activity):
    """The activity of a flow that is made for a function: what it fails with is how that run ends; its parent decides what then."""

    def suspended(self, failure: Failure, code: str) -> Move:
        return Finish(self.name, Status.FAILED, Outcome.FAILED, code=code)


def its_result(state: State) -> Any:
    """The result of a run that has one activity."""
    return state.results.get(DO)


def body_of(activity: Activity) -> dict[str, Node]:
    """The nodes of the flow that is made for an activity."""
    given = {option.name: getattr(activity, option.name) for option in fields(Activity) if option.init}
    return {DO: Item(**{**given, "then": DONE}), DONE: End(COMPLETE, result=its_result)}


@dataclass(frozen=True, kw_only=True)
class Fanned(Node):
    """What all nodes have that wait for children.

    Args:
        then: the next node when they are joined. failed: where it leads that they failed; without it a person decides.
        deadline: how long they may take, and what then; those that still run are asked to end.
        on_cancel: what becomes of children that run when this run ends: REQUEST (they are asked to end), ABANDON (they go on) or WAIT (they are
            asked, and this run ends after them).
    """

    kind: ClassVar[str] = CHILDREN
    form: ClassVar[str] = ""
    code: ClassVar[str] = ITEMS_FAILED

    then: str = ""
    failed: str = ""
    deadline: Deadline | None = None
    on_cancel: OnCancel = REQUEST
    losers: Losers | Expiry = field(default=CANCEL, init=False)

    @property
    def awaited(self) -> bool:
        """Whether it waits for its children to end."""
        return True

    @property
    def at_once(self) -> int:
        """How many children run at once."""
        return 1000

    def planned(self, state: State) -> Sequence[Planned]:
        """What is to be started."""
        raise NotImplementedError

    def needed(self, total: int) -> int:
        """How many must succeed."""
        return total

    def tolerates(self, total: int) -> int:
        """How many may fail."""
        return 0

    def bodies(self) -> Mapping[str, Mapping[str, Node]]:
        """The flows that are made for functions here: what is added to `FLOW.NODE`, and the nodes of each."""
        return {}

    def flows(self) -> Mapping[str, Any]:
        """Branch → the flow class (or its name) that it runs; those that are made for functions are not in it."""
        return {}

    def flow_of(self, own: str, version: int, branch: str) -> tuple[str, int | None]:
        """Name and version of the flow that a branch runs, where `own` is the name of this node's flow; None: the newest."""
        given = self.flows().get(branch, self.flows().get(""))
        if given is None:
            suffix = f".{branch}" if branch else ""
            return f"{own}.{self.name}{suffix}", version
        made: Any = getattr(given, "definition", None)
        return (str(given), None) if made is None else (made.name, made.version)

    def enter(self, state: State) -> Move:
        branches = list(self.planned(state))
        total = len(branches)
        written = [[one.name, dict(one.input), one.key] for one in branches]
        what = "one child" if total == 1 else f"{total} children"
        return Park(
            self.name,
            self.kind,
            f"waiting for {what}",
            **limits(self.deadline, state),
            detail={
                "form": self.form,
                "body": self.body_words(state.flow),
                "branches": branches,
                "need": self.needed(total),
                "tolerated": self.tolerates(total),
                "concurrency": self.at_once,
                "on_cancel": OnCancel(self.on_cancel).value,
                "on_lose": "leave" if self.losers is Losers.LEAVE else "cancel",
                "awaited": self.awaited,
                "starts": canonical.digest(written, f"what {self.name} starts"),
            },
        )

    def body_words(self, own: str) -> str:
        """What its branches run, as the record keeps it: a migration takes a fan over where this stays the same."""
        named = {branch: self.flow_of(own, 0, branch)[0] for branch in {**self.flows(), **self.bodies()}}
        return ", ".join(sorted(f"{branch}: {name}" if branch else name for branch, name in named.items()))

    def resume(self, state: State, trigger: Trigger) -> Move:
        wait = state.wait
        if wait is None:
            return self.enter(state)
        if wait.evidence is not None:
            return self.answered(wait.evidence)
        if wait.due and self.deadline is not None:
            return expire(self.deadline, self.name, WAIT_EXPIRED)
        return Rest()

    def answered(self, evidence: Mapping[str, Any]) -> Move:
        """Where the join leads."""
        if evidence.get("verdict") != FAILED:
            return Goto(self.then)
        return Goto(self.failed) if self.failed else self.unrouted()

    def unrouted(self) -> Move:
        """They have failed, and no route says what then."""
        return Suspend(self.name, Outcome.HUMAN_REQUIRED, self.code, "too many of its children have failed")

    def result(self, state: State) -> Any:
        """The node's result, from the evidence."""
        evidence = state.wait.evidence if state.wait else None
        return None if evidence is None else self.told(evidence)

    def told(self, evidence: Mapping[str, Any]) -> Any:
        """The result that this evidence makes: by branch, how each ended."""
        return dict(evidence.get("branches", {}))

    def targets(self) -> Iterator[tuple[str, str]]:
        yield "", need_text(self.then, "then=")
        if self.failed:
            yield "failed", need_text(self.failed, "failed=")
        yield from deadline_target(self.deadline)
        yield from super().targets()

    def shape(self) -> Mapping[str, Any]:
        made = {name: {key: dict(node.shape()) for key, node in nodes.items()} for name, nodes in self.bodies().items()}
        return {**super().shape(), "form": self.form, "awaited": self.awaited, "bodies": made, "runs": self.body_words("")}


def object_of(value: object, what: str) -> Mapping[str, Any]:
    """A child's input, checked.

    Raises:
        DefinitionError: it is no JSON object.
    """
    if not isinstance(value, Mapping):
        raise DefinitionError(f"{what} must be an object (a dict): it is the input of a run. Got {value!r:.80}.")
    return value


def as_flow(given: object) -> Any:
    """What `child=` names, if it can be run: a flow class, or a flow's name.

    Raises:
        DefinitionError: it is neither.
    """
    if getattr(given, "definition", None) is not None or (isinstance(given, str) and given):
        return given
    raise DefinitionError(f"child= is a flow class, or the name of a flow; got {given!r:.60}.")


Pure = Callable[[State], Any]
