"""What a test of a flow needs, in one object.

    run         workers, until nothing is ready, running or due
    move, until durable time, from timer to timer
    deliver, decide, reviewer       the outside and people
    run(crash_at=), crashes         a worker that dies at a commit; another one takes over
    assert_run, assert_operations, assert_commitments       the record

Without real workers a worker in this process does everything; where it has died, a new one is made, the dead one's row says so, and a tick
puts its work back, as the clock of Beat does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.db import connections
from django.test import override_settings

from approvals.api import Decided, decide
from approvals.models import Request
from flows import api, registry
from flows.core.misuse import UsageError
from flows.core.nodes.activity import Activity
from flows.models import Commitment, Operation
from flows.services import identify
from flows.services.events import Received
from flows.testing import LocalWorker, NotThere, TimeLapse, movable_clock, timelapse
from tasks.testing.crashing import Fuse, Killed, lit
from tasks.testing.network import Guard, no_network

T = TypeVar("T")
MAX_POINTS = 2000


class CannotCrash(UsageError):
    """A crash cannot be had here; the text says what is missing."""

    code = "CANNOT_CRASH"


class Hand:
    """Beat and a worker in this process; after a death, the next worker."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._worker: LocalWorker | None = None
        self.fuse: Fuse | None = None

    def act(self) -> None:
        """What the two do in one round."""
        try:
            with lit(self.fuse):
                worker = self._alive()
                worker.tick()
                worker.run()
        except Killed:
            self.end()

    def end(self) -> None:
        """The worker is gone, and its row says so; the next tick puts its work back."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()

    def _alive(self) -> LocalWorker:
        if self._worker is None:
            known = [one for pair in registry.known() if (one := registry.definition(*pair)) is not None]
            nodes = [node for one in known for node in one.nodes.values() if isinstance(node, Activity)]
            queues, placements = {node.queue for node in nodes}, {node.placement for node in nodes if node.placement}
            self._worker = LocalWorker(self._using, sorted({"agents", "cleanup", *queues}), sorted(placements))
        return self._worker


class Outlast:
    """The kit of one test. Workflows are given as rows, answers of a start, or ids."""

    def __init__(self, using: str, lapse: TimeLapse, guard: Guard | None, hand: Hand | None) -> None:
        self._using, self._lapse, self._guard, self._hand = using, lapse, guard, hand

    # ---------------------------------------------------------------- workers and time

    def run(self, *, crash_at: int | None = None) -> None:
        """Until nothing is ready, running or due.

        Args:
            crash_at: the worker dies at this point, counted from 0: before and after each of its commits. A new one takes over.
        Raises:
            NotThere: the workers did not get that far, or there are fewer points than that.
            CannotCrash: the workers are real, or the test is inside a transaction.
            AssertionError: something reached for the network.
        """
        if crash_at is None:
            self._told(self._lapse.settle)
            return
        with self._burning(crash_at) as fuse:
            self._told(self._lapse.settle)
        if not fuse.burnt:
            raise NotThere(f"there is no point {crash_at}: {crash_at - fuse.left} were passed")

    def move(self, **span: float) -> None:
        """Let that much durable time pass (arguments of `timedelta`), from timer to timer, each time until the workers have acted.

        Raises:
            NotThere: the workers did not get that far in time.
        """
        self._told(lambda: self._lapse.by(**span))

    def until(self, workflow: Any, *, status: str | None = None, node: str | None = None, outcome: str | None = None) -> None:
        """Let durable time pass until the workflow is there.

        Raises:
            NotThere: it does not come there.
        """
        self._told(lambda: self._lapse.until(workflow, status=status, node=node, outcome=outcome))

    def crashes(self, scenario: Callable[[], T]) -> Iterator[T]:
        """Play the scenario again and again, each time with a worker that dies one point later, until there is no further point.

        Args:
            scenario: starts a run of its own (keys and event ids are new each time) and calls `run`, `move` or `until`.
        Returns:
            What the scenario returned, each time after it was played to its end.
        Raises:
            CannotCrash: as `run`. NotThere: there were more than 2,000 points, or none.
        """
        for number in range(MAX_POINTS):
            with self._burning(number) as fuse:
                played = scenario()
            if not fuse.burnt:
                if not number:
                    raise NotThere("the scenario passes no point: it has to call run(), move() or until()")
                return
            yield played
        raise NotThere(f"{MAX_POINTS} points were passed and there are more")

    # ---------------------------------------------------------------- the outside, and people

    def deliver(
        self, type: str, *, key: str, payload: Mapping[str, Any] | None = None, event_id: str = "", **options: Any
    ) -> Received:
        """Deliver an event as `flows.signal` does; without an id it is a new one each time. `run` lets it be acted on.

        Raises:
            PayloadError: it cannot be stored.
        """
        return api.signal(event_id or f"test-{uuid4()}", type, key=key, payload=payload, using=self._using, **options)

    def decide(self, workflow: Any, verdict: str, *, by: Any, comment: str = "", **options: Any) -> Decided:
        """Answer the one request for approval that the workflow waits for: "approve", "deny" or "changes".

        Raises:
            AssertionError: none or several wait, or the answer was refused; the text is what a reviewer would read.
        """
        row_id = identify.workflow_id(workflow)
        waiting = list(Request.objects.using(self._using).filter(workflow_id=row_id, status="pending"))
        assert len(waiting) == 1, f"{len(waiting)} requests of {self._where(row_id)} wait for an answer"
        given = decide(
            waiting[0], verdict=verdict, digest=waiting[0].digest, by=by, comment=comment, using=self._using, **options
        )
        assert given, f"{given.code}: {given.sentence}"
        return given

    def reviewer(self, user: T, *roles: str) -> T:
        """Make a stored user one who may answer requests that ask these roles (names of groups); the user."""
        may = Permission.objects.using(self._using).get(content_type__app_label="outlast_approvals", codename="answer_request")
        for role in roles:
            group, _ = Group.objects.using(self._using).get_or_create(name=role)
            group.permissions.add(may)
            user.groups.add(group)  # type: ignore[attr-defined]
        return user

    # ---------------------------------------------------------------- the record

    def assert_run(self, workflow: Any, **wanted: str) -> None:
        """The workflow's row says so: `status=`, `node=`, `outcome=`, `error_code=`.

        Raises:
            AssertionError: it says otherwise.
        """
        row = identify.get(workflow, self._using)
        found = {name: getattr(row, name) for name in wanted}
        assert found == wanted, f"{self._where(row.pk)}: {found}, and not {wanted}"

    def assert_operations(self, workflow: Any, *wanted: tuple[str, str]) -> None:
        """All that was done outside, in order: ("node", "status"), or ("node.name", "status") where the effect has a name.

        Raises:
            AssertionError: there is more, less or something else.
        """
        row_id = identify.workflow_id(workflow)
        rows = Operation.objects.using(self._using).filter(workflow_id=row_id).order_by("activity_seq", "name", "id")
        self._same("operations", row_id, [(_dotted(row.node, row.name), row.status) for row in rows], wanted)

    def assert_commitments(self, workflow: Any, *wanted: tuple[str, str]) -> None:
        """All that is or was owed to the outside, in order: ("name", "status").

        Raises:
            AssertionError: there is more, less or something else.
        """
        row_id = identify.workflow_id(workflow)
        rows = Commitment.objects.using(self._using).filter(workflow_id=row_id).order_by("activity_seq", "id")
        self._same("commitments", row_id, [(row.name, row.status) for row in rows], wanted)

    # ---------------------------------------------------------------- inside

    @contextmanager
    def _burning(self, at: int) -> Iterator[Fuse]:
        if self._hand is None:
            raise CannotCrash('Real workers are processes of their own: kill one of those, or leave workers="real" away.')
        if connections[self._using].in_atomic_block:
            raise CannotCrash(
                "Inside a transaction nothing is committed, so there is no point to die at. "
                "Say @pytest.mark.django_db(transaction=True), or use a TransactionTestCase."
            )
        if self._hand.fuse is not None:
            raise CannotCrash("One death at a time: inside crashes() leave crash_at= away.")
        self._hand.fuse = fuse = Fuse(at)
        try:
            yield fuse
        finally:
            self._hand.fuse = None

    def _told(self, do: Callable[[], Any]) -> None:
        try:
            do()
        finally:
            if self._guard is not None:
                self._guard.tell()

    def _same(self, what: str, row_id: Any, found: Sequence[tuple[str, str]], wanted: Sequence[tuple[str, str]]) -> None:
        assert list(found) == list(wanted), f"{what} of {self._where(row_id)}: {found}, and not {list(wanted)}"

    def _where(self, row_id: Any) -> str:
        row = identify.get(row_id, self._using)
        code = f" ({row.error_code})" if row.error_code else ""
        return f"{row.flow_name} {row.pk}, {row.status} {row.outcome} at {row.node}{code}"


def _dotted(node: str, name: str) -> str:
    return f"{node}.{name}" if name else node


@contextmanager
def kit(*, real: bool = False, network: bool = False, patience: float = 60.0, using: str | None = None) -> Iterator[Outlast]:
    """The kit for the length of a block, for tests without pytest; the fixture `outlast` is this.

    Args:
        real: the workers and Beat are processes of their own, on the same database; then no network is refused, for the broker is there.
        network: let author code reach other machines. patience: seconds of real time that the workers have after each step.
    Raises:
        NotATestDatabase: the database's name does not begin with `test_`.
    """
    alias = identify.alias(using)
    with ExitStack() as stack:
        clock = stack.enter_context(movable_clock(alias))
        guard = None if real or network else stack.enter_context(no_network())
        hand = Hand(alias)
        lapse = stack.enter_context(timelapse(clock, patience=patience, act=None if real else hand.act, using=alias))
        if not real:
            given = getattr(settings, "OUTLAST", {})
            stack.enter_context(override_settings(OUTLAST={**given, "DISPATCHER": ""}))  # hints would go to a broker
            stack.callback(hand.end)
        yield Outlast(alias, lapse, guard, None if real else hand)
        if guard is not None:
            guard.tell()
