"""Take runs to a newer version of their definition: by a person (one or many, also as a dry run), or by the worker that takes one up.

    lock ──► may it move? ──► the steps of migrate_from, pure ──► what goes over ──► one arrow (flows/store/migrate.py), the planes' rows
Nothing passes an effect in doubt, nobody migrates under an owner, and what is on its way to an end goes there under its own version.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from flows import registry
from flows.conf import conf
from flows.core import payload, versions
from flows.core.definition import Definition
from flows.core.errors import CannotMigrate, HalfMove, PayloadError
from flows.core.misuse import UnknownWorkflow
from flows.core.protocol import TERMINAL, Outcome, Status
from flows.dispatch import after_commit, hints_for
from flows.models import Workflow
from flows.services import identify, notices
from flows.services.carry import Carried, Seen, carried, look, unserviced
from flows.services.owned import Owned, reload
from flows.services.proceed import Progress
from flows.services.untouched import Touched, called
from flows.store import leave, locks
from flows.store import migrate as store
from flows.store.sql import committing, dumps

logger = logging.getLogger("outlast.flows")

#: Outcome of the notice to the accountable user: an open question to reviewers was withdrawn.
WITHDRAWN = "APPROVAL_WITHDRAWN"
WORKFLOW_MIGRATED = "WORKFLOW_MIGRATED"
MAX_REDECISIONS = 50
BATCH = 200


class Answer(StrEnum):
    """migrated, or would_migrate (a dry run). already: it is of that version. refused: see the reason. busy: somebody works on it now."""

    MIGRATED = "migrated"
    WOULD_MIGRATE = "would_migrate"
    ALREADY = "already"
    REFUSED = "refused"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Migration:
    """What became of one run: from which version and node to which; why not, if not. `to_version` is 0 where no way leads anywhere."""

    answer: Answer
    id: UUID
    flow: str
    key: str | None
    from_version: int
    to_version: int
    from_node: str
    to_node: str = ""
    reason: str = ""

    def __bool__(self) -> bool:
        return self.answer is Answer.MIGRATED


class _No(Exception):
    """Why this run is not migrated now."""

    def __init__(self, answer: Answer, reason: str) -> None:
        super().__init__(reason)
        self.answer, self.reason = answer, reason


@dataclass(frozen=True, slots=True)
class _Wish:
    """Who wants what, and why."""

    label: str
    reason: str
    to: int | None
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    seen: Seen
    steps: Sequence[Definition]
    walked: versions.Walked
    over: Carried
    given: Mapping[str, str]


def migrate(
    workflow: Any, *, by: Any = None, reason: str = "", to: int | None = None, dry_run: bool = False, using: str | None = None
) -> Migration:
    """Take one run to a newer version of its flow, by the steps that `Meta.migrate_from` declares; atomic with the caller's transaction.

    Args:
        workflow: the run or its id. to: the version; default the newest that can be reached. dry_run: only say what would be done.
        by, reason: who wants it and why; both are kept in the run's log.
    Raises:
        UnknownWorkflow: there is none. UnknownFlow: this process does not know the version `to`.
    """
    alias = identify.alias(using)
    wish = _Wish(identify.label(by), reason, to, dry_run)
    return _migrate(identify.workflow_id(workflow), wish, alias, patient=True)


def migrate_many(
    workflows: Iterable[UUID],
    *,
    by: Any = None,
    reason: str = "",
    to: int | None = None,
    dry_run: bool = False,
    using: str | None = None,
) -> Iterator[Migration]:
    """The same for many runs, each in a transaction of its own. Those that somebody works on are tried once more at the end.

    Raises:
        UnknownWorkflow, UnknownFlow: as for one.
    """
    alias = identify.alias(using)
    wish = _Wish(identify.label(by), reason, to, dry_run)
    busy: list[UUID] = []
    for row_id in workflows:
        found = _migrate(row_id, wish, alias, patient=False)
        if found.answer is Answer.BUSY:
            busy.append(row_id)
        else:
            yield found
    for row_id in busy:
        yield _migrate(row_id, wish, alias, patient=False)


def older(flow: str, *, source: int | None = None, to: int | None = None, using: str | None = None) -> Iterator[UUID]:
    """The live runs of a flow that are of an older version than `to` (default: the newest that is known here), in id order.

    Raises:
        UnknownFlow: this process does not know the flow, or not that version.
    """
    alias = identify.alias(using)
    below = registry.flow(flow, to).definition.version
    after = UUID(int=0)
    while found := store.live(flow, below=below, source=source, after=after, limit=BATCH, using=alias):
        yield from found
        after = found[-1]


def at_wake(owned: Owned) -> Progress | None:
    """Migrate a run that this worker has just claimed, before anything of it is begun.

    None: it goes on as it is, because an effect of it is in doubt, or with `owned.blocked` saying why it cannot go on here.
    """
    for _ in range(MAX_REDECISIONS):
        seen = Seen(owned.row, owned.state, Status.RUNNING, "", owned.worker, pause=owned.pause)
        if store.doubts(owned.row.id, owned.using):
            return None
        try:
            plan = _plan(seen, owned.steps, owned.using)
        except _No as no:
            owned.blocked = no.reason
            return None
        with committing("migrate", owned.using):
            row = owned.row
            held = locks.workflow_as_seen(row.id, row.version, row.wake_seq, owned.using)
            if held and _move(plan, versions.AT_WAKE, "", owned.using):
                owned.hinted = True
                return Progress.LEFT
        if not reload(owned):
            return Progress.LOST
    return Progress.LOST


def _migrate(row_id: UUID, wish: _Wish, using: str, *, patient: bool) -> Migration:
    with committing("migrate", using):
        if not Workflow.objects.using(using).filter(pk=row_id).exists():
            raise UnknownWorkflow(row_id)
        locked = wish.dry_run or (locks.workflows if patient else locks.free_workflows)([row_id], using)
        seen = look(row_id, using)
        steps: Sequence[Definition] = ()
        try:
            steps = _steps(seen, wish.to)
            if not locked:
                raise _No(Answer.BUSY, "somebody is changing it at this moment; try again")
            _may_move(seen, using)
            plan = _plan(seen, steps, using)
            if wish.dry_run:
                return _answer(seen, Answer.WOULD_MIGRATE, steps, plan.walked.node)
            if not _move(plan, wish.label, wish.reason, using):
                raise HalfMove(f"workflow {row_id} was locked and has moved all the same")
        except _No as no:
            return _answer(seen, no.answer, steps, "", no.reason)
    return _answer(seen, Answer.MIGRATED, steps, plan.walked.node)


def _answer(seen: Seen, answer: Answer, steps: Sequence[Definition], node: str, reason: str = "") -> Migration:
    row = seen.row
    target = steps[-1].version if steps else 0
    return Migration(answer, row.id, row.flow_name, row.key, row.flow_version, target, row.node, node, reason)


def _steps(seen: Seen, to: int | None) -> Sequence[Definition]:
    row = seen.row
    if to is not None and registry.flow(row.flow_name, to).definition.version == row.flow_version:
        raise _No(Answer.ALREADY, _drifted(row.flow_name, row.flow_version, row.fingerprint))
    found = registry.steps(row.flow_name, row.flow_version, to)
    if found or seen.status in TERMINAL:
        return found
    loaded = registry.known().versions(row.flow_name)
    if to is None and row.flow_version in loaded and max(loaded) == row.flow_version:
        raise _No(Answer.ALREADY, _drifted(row.flow_name, row.flow_version, row.fingerprint))
    wanted = f"version {to}" if to is not None else "a newer version"
    raise _No(
        Answer.REFUSED,
        f"no migrate_from leads from version {row.flow_version} to {wanted}; declare it in Meta, or keep version {row.flow_version} loaded",
    )


def _drifted(name: str, version: int, fingerprint: str) -> str:
    """Where the version is loaded in another shape than the run's, its way out."""
    loaded = registry.definition(name, version)
    if loaded is None or loaded.fingerprint == fingerprint:
        return ""
    raise _No(
        Answer.REFUSED,
        f"version {version} of {name} has another shape now than when this run was started: raise Meta.version and write "
        f"migrate_from = {{{version}: …}}, or put the old shape back and resume",
    )


def _may_move(seen: Seen, using: str) -> None:
    row, version = seen.row, seen.row.flow_version
    if seen.status in TERMINAL:
        raise _No(Answer.REFUSED, f"it has ended: {seen.status}")
    if seen.status == Status.RUNNING:
        raise _No(Answer.BUSY, "a worker runs it now; try again when it waits")
    if doubts := store.doubts(row.id, using):
        raise _No(Answer.REFUSED, f"nobody knows whether {', '.join(doubts)} happened; say so first (flows resolve)")
    if seen.target or seen.status in (Status.RECONCILING, Status.CANCELLING):
        raise _No(
            Answer.REFUSED, f"it is on its way to an end ({seen.target or seen.status}), which it reaches under version {version}"
        )


def _plan(seen: Seen, steps: Sequence[Definition], using: str) -> _Plan:
    target = steps[-1]
    try:
        walked = called(versions.walk, steps, seen.state)
        if names := unserviced(seen.row.id, target, using):
            raise CannotMigrate(
                f"no version that is known here declares how to undo or release {', '.join(names)}; keep the node in version "
                f"{target.version}, or version {seen.row.flow_version} loaded"
            )
        over = carried(seen, target, walked, using)
        if seen.state.activity is not None and seen.state.activity.known and not over.activity:
            raise CannotMigrate(
                f"its effect at {seen.row.node} has happened, and its result is still to be taken: let it go on under version "
                f"{seen.row.flow_version} first, or keep the node"
            )
        given = {name: _encoded(name, value) for name, value in walked.results.items()}
    except Touched as touched:  # of a dry run nothing may get out, and what that foretells holds for the real one, too
        raise _No(Answer.REFUSED, str(touched)) from None
    except CannotMigrate as no:
        if no.__cause__ is not None:
            logger.error("workflow %s cannot be migrated: %s", seen.row.id, no, exc_info=no.__cause__)
        raise _No(Answer.REFUSED, identify.reason(str(no))) from no
    return _Plan(seen, steps, walked, over, given)


def _encoded(name: str, value: Any) -> str:
    try:
        return payload.encode(value, f"the result of {name}", conf.MAX_RESULT_BYTES)
    except PayloadError as fault:
        raise CannotMigrate(f"the result for node {name!r} cannot be kept: {fault.problem}") from fault


def _move(plan: _Plan, label: str, reason: str, using: str) -> bool:
    """Make the plan true, all of it or nothing; the workflow is locked, or its owner's."""
    seen, row, over = plan.seen, plan.seen.row, plan.over
    status, outcome = _aim(seen)
    version, seen_status = row.version, seen.status
    if seen.status == Status.RUNNABLE:  # the protocol leads from ready to ready only by way of a hold, which nobody else sees
        leave.pause(row.id, label, dumps({"for": "migrate"}), using)
        version, seen_status = version + 1, Status.PAUSED
    moved = store.migrate(_arrow(plan, label, reason, version, seen_status, status, outcome), using)
    if moved is None:
        return False
    if seen.status == Status.PAUSED:  # held by a person: it stays so
        leave.pause(row.id, label, dumps({"for": "migrate"}), using, outcome=outcome or Outcome.WAITING)
    withdrawn = registry.migrated(row.id, plan.steps[-1].nodes, over.wait, using)
    if withdrawn and row.user_id is not None:
        notices.owe(row.id, row.user_id, WITHDRAWN, WORKFLOW_MIGRATED, using)
    if status is Status.RUNNABLE and seen.status != Status.PAUSED:
        after_commit(hints_for([(row.id, moved.queue, row.flow_name, plan.walked.node)]), using)
    return True


def _aim(seen: Seen) -> tuple[Status, str]:
    """The status that the arrow leads to, and the outcome that the workflow keeps: a person who is wanted for something else still is."""
    asked = seen.outcome if seen.outcome not in ("", Outcome.WAITING, Outcome.WORKFLOW_MIGRATION_REQUIRED) else ""
    if seen.pause:
        return Status.PAUSED, Outcome.WAITING
    if seen.status == Status.WAITING and asked:
        return Status.PAUSED, asked
    return Status.RUNNABLE, asked


def _arrow(plan: _Plan, label: str, reason: str, version: int, seen_status: str, status: Status, outcome: str) -> store.Migrate:
    seen, row, over, target = plan.seen, plan.seen.row, plan.over, plan.steps[-1]
    given = sorted(plan.given)
    return store.Migrate(
        id=row.id,
        version=version,
        seen_status=seen_status,
        epoch=row.epoch,
        seen_version=row.flow_version,
        seen_fingerprint=row.fingerprint,
        wake_seq=row.wake_seq,
        worker=seen.worker,
        status=status,
        outcome="" if status is Status.RUNNABLE else outcome,
        error_code=over.code,
        node=plan.walked.node,
        flow_version=target.version,
        fingerprint=target.fingerprint,
        queue=over.queue,
        placement=over.placement,
        priority_seconds=conf.PRIORITY_SECONDS,
        keep_activity=over.activity,
        timeout=over.timeout,
        keep_wait=over.wait,
        on_expiry=over.on_expiry,
        given_nodes=given,
        given_visits=[seen.state.visits.get(name, 0) for name in given],
        given_results=[plan.given[name] for name in given],
        ref=label,
        note=_note(plan, reason),
    )


def _note(plan: _Plan, reason: str) -> str:
    """What the log says beside the arrow: versions, what went over, whose words."""
    over = plan.over
    kept = [*(["wait"] if over.wait is not None else []), *(["activity"] if over.activity else [])]
    said = {
        "reason": identify.reason(reason),
        "said": list(plan.walked.notes),
        "kept": kept,
        "results": sorted(plan.walked.results),
    }
    told = {name: value for name, value in said.items() if value}
    return dumps(
        {"from": plan.seen.row.flow_version, "to": plan.steps[-1].version, "through": list(plan.walked.versions[:-1]), **told}
    )
