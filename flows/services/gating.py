"""The look and the pass: before an attempt's code runs, what must hold is looked up, judged by the pure gate, and recorded (H1, H2).

    look ──► probes and providers, outside any transaction; their failure is the attempt's
    judge ──► Run: pass      one transaction: observations, verdict, the approval used up, the budget set aside
         └──► anything else: the attempt ends as refused; the arrow that follows records the verdict
Guard of the pass: the workflow as claimed. An approval or a budget that is gone meanwhile: judged again, with fresh facts. Capacity that is not
to be had: the attempt is given back, and its activity waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import connections

from flows import registry
from flows.core import canonical
from flows.core.capacity import Want
from flows.core.decide import Decided, decide
from flows.core.errors import ActivityError, CompetenceFailure, LostOwnership, Route
from flows.core.gate import Answer, Refusal
from flows.core.moves import Run as RunMove
from flows.core.nodes import Activity, Pipeline, candidate_of
from flows.core.nodes.base import Node
from flows.core.requirements import Fresh, Gate
from flows.core.state import Completed, Failed, Lacking, Look, Seen, Trigger, VerificationFact, Woken
from flows.core.verdicts import Verdict
from flows.services import freshness, ledger
from flows.services.authored import call, transaction_of
from flows.services.capacity import taking
from flows.services.owned import Owned, approval_facts, policy_fact
from flows.services.providers import Run, provider
from flows.store import gate as store
from flows.store.sql import committing, dumps

if TYPE_CHECKING:
    from flows.services.attempt import Attempt

MAX_VERSION = 200
MAX_TRIES = 10


class NotAllowed(Exception):
    """The gate refused: the code is not run."""


class NoCapacity(Exception):
    """Something that is scarce is not to be had now: the code is not run yet. `lacking` says what."""

    def __init__(self, lacking: Lacking) -> None:
        super().__init__(lacking.reason)
        self.lacking = lacking


def pass_gate(owned: Owned, attempt: Attempt, placements: Sequence[str]) -> None:
    """Look, judge, and pass; the code may run when this returns.

    Raises:
        NoCapacity: something scarce is not to be had now.
        NotAllowed: the gate refused, or the workflow does not go on with this node; `owned.facts` says why.
        LostOwnership: somebody else has moved the workflow.
        ActivityError, and whatever a probe or a provider raises: the look failed.
    """
    assert owned.definition is not None
    node = owned.definition.nodes[owned.state.node]
    wants = taking.wants_of(owned, node)
    for _ in range(MAX_TRIES):
        before = transaction_of(connections[owned.using])
        look(owned, attempt, node, placements)
        if transaction_of(connections[owned.using]) != before:
            raise ActivityError(f"a probe or provider of {owned.label} returned inside an open transaction")
        decided = _judge(owned)
        if not isinstance(decided.move, RunMove):
            raise NotAllowed
        if _passed(owned, node, decided.answers, wants):
            attempt.versions = {name: seen.version for name, seen in _looked(owned).seen.items()}
            return
        assert owned.definition is not None
        owned.facts = replace(owned.facts, approvals=approval_facts(owned.definition, owned.row.id, owned.using))
    raise LostOwnership(
        f"the approval or budget of workflow {owned.row.id} changed {MAX_TRIES} times in one look; it is put back"
    )


def _judge(owned: Owned) -> Decided:
    assert owned.definition is not None
    owned.tell_time()
    return decide(owned.definition, owned.state, Woken(), owned.facts)


def look(owned: Owned, attempt: Attempt, node: Node, placements: Sequence[str]) -> None:
    """Everything that the gate of this node looks at, into `owned.facts.look`."""
    row, definition = owned.row, owned.definition
    assert definition is not None
    ends = [f"{one.name}/{one.steps[-1].name}" for one in definition.nodes.values() if isinstance(one, Pipeline)]
    recorded = store.facts(row.id, node.name, definition.baselines_of(node.name), ends, row.intent_version, owned.using)
    gate = node.gate or Gate()
    baseline = node.name in definition.baselines
    seen = _see(definition.probes if baseline else gate.probes, attempt, recorded, owned, always=baseline)
    run = Run(row.id, row.flow_name, row.key, node.name, row.user_id, row.release, owned.using)
    owned.facts = replace(
        owned.facts,
        policy=policy_fact(row, owned.using),
        look=Look(
            seen=seen,
            baseline=_seen(recorded.baseline, owned),
            verifications={name: VerificationFact(*one) for name, one in recorded.verifications.items()},
            commitments=recorded.commitments,
            authority={name: _answer("AUTHORITY", run, name) for name in gate.authority},
            competence=_answer("COMPETENCE", run, gate.competence.of, gate.competence.errors) if gate.competence else "",
            placement=_answer("PLACEMENT", run, gate.placement, placements) if gate.placement else "",
            budget=ledger.look(owned, node),
            held=recorded.held,
        ),
    )


def _see(
    probes: Mapping[str, Fresh], attempt: Attempt, recorded: store.Recorded, owned: Owned, *, always: bool
) -> dict[str, Seen]:
    """What the probes see now; one whose last look is young enough is not called."""
    found: dict[str, Seen] = {}
    for name, probe in probes.items():
        last = recorded.last.get(name)
        if not always and last is not None and recorded.now - last[1] < probe.reuse.total_seconds():
            found[name] = _seen({name: last}, owned)[name]
            continue
        found[name] = Seen(_version(name, call(registry.function(probe.probe), attempt)), owned.state.now, fresh=True)
    return found


def _version(name: str, value: Any) -> str:
    if value is None:
        raise ActivityError(f"the probe of {name} returned nothing: what was looked at has no version")
    text = value if isinstance(value, str) else canonical.digest(value, f"what the probe of {name} saw")
    if len(text) > MAX_VERSION or "\x00" in text:
        text = canonical.digest(text, f"what the probe of {name} saw")
    return text


def _seen(rows: Mapping[str, tuple[str, float]], owned: Owned) -> dict[str, Seen]:
    return {name: Seen(version, store.at(at, owned.state.now)) for name, (version, at) in rows.items()}


def _answer(setting: str, *arguments: Any) -> str:
    answer = provider(setting)(*arguments)
    if not isinstance(answer, str):
        raise CompetenceFailure(f'OUTLAST["{setting}"] answered {answer!r:.80}; a provider answers "" or the reason of a denial')
    return answer[:300]


def _passed(owned: Owned, node: Node, answers: tuple[Answer, ...], wants: Sequence[Want]) -> bool:
    """One transaction; False if the approval, or the budget, was no longer to be had.

    Raises:
        NoCapacity: so was capacity.
        LostOwnership: somebody else has moved the workflow.
    """
    row, activity = owned.row, owned.state.activity
    assert owned.definition is not None and activity is not None
    used = owned.facts.approvals.get(node.gate.approved_by) if node.gate and node.gate.approved_by else None
    try:
        with committing("pass", owned.using):
            looked = _as_recorded(owned, node.name, None, answers)
            if not store.pass_(
                looked, epoch=row.epoch, intent_version=row.intent_version, worker=owned.worker, using=owned.using
            ):
                raise LostOwnership(f"workflow {row.id} is no longer this worker's; {owned.label} was not begun")
            if owned.definition.freshness:
                freshness.passed(owned, node, looked.names if looked.baseline else ())
            if used is not None and used.status == "approved":
                plane = registry.wait_plane("approval")
                if plane is None or not plane.use(owned.using, used.request_id, activity.seq):
                    raise _Gone
            if wants and (lacking := taking.take(owned, node, wants)) is not None:
                raise NoCapacity(lacking)
            if not ledger.reserve(owned, node):
                raise _Gone
    except _Gone:
        return False
    if used is not None:
        owned.facts = replace(owned.facts, approvals=approval_facts(owned.definition, row.id, owned.using))
    return True


class _Gone(Exception):
    """Roll back: the approval, or the budget, is no longer to be had."""


def lacks(owned: Owned, what: str) -> None:
    """A call of the running agent turn found no budget: the gate, asked again, refuses for that."""
    owned.facts = replace(owned.facts, look=replace(_looked(owned), budget=what))


def refused(owned: Owned, refusal: Refusal) -> None:
    """Record a refusal in the transaction of the arrow that it leads to."""
    store.refuse(_as_recorded(owned, refusal.node, refusal, refusal.answers), owned.using)


def verified(owned: Owned, trigger: Trigger) -> bool | None:
    """Whether the attempt says that its candidate passed (True) or did not (False); None where it verified nothing."""
    node = owned.definition.nodes.get(owned.state.node) if owned.definition is not None else None
    if not isinstance(node, Activity) or not node.verifies:
        return None
    if isinstance(trigger, Completed):
        activity = owned.state.activity
        whole = not isinstance(node, Pipeline) or (activity is not None and activity.step == node.steps[-1].name)
        return True if whole else None  # of a pipeline all of it
    return False if isinstance(trigger, Failed) and trigger.failure.route is Route.VERIFY else None


def verify(owned: Owned, trigger: Trigger, *, passed: bool) -> None:
    """Record the verification of exactly the candidate that the attempt looked at, in the transaction of the arrow that ends the attempt.

    One that did not pass is counted against the envelopes of the node that proposed it.
    """
    activity, definition = owned.state.activity, owned.definition
    assert activity is not None and definition is not None
    node = definition.nodes[activity.node]
    assert isinstance(node, Activity)
    candidate = candidate_of(owned.state, node.verifies)
    if candidate is None:
        return
    look = owned.facts.look
    store.verify(
        store.Verified(
            workflow=owned.row.id,
            node=node.name,
            seq=activity.seq,
            attempt=activity.number,
            of=node.verifies,
            digest=candidate["digest"],
            revision=int(candidate.get("revision") or 1),
            versions=dumps(
                {name: seen.version for name, seen in look.seen.items()}
                if look is not None
                else store.observed(owned.row.id, activity.seq, owned.using)  # the attempt that passed has looked
            ),
            passed=passed,
            code=trigger.failure.code if isinstance(trigger, Failed) else "",
        ),
        owned.using,
    )
    errors = definition.envelopes.get(node.verifies)
    if not passed and errors is not None:
        store.burn(owned.row.flow_name, node.verifies, owned.row.release, errors, owned.using)


def _as_recorded(owned: Owned, name: str, refusal: Refusal | None, answers: tuple[Answer, ...]) -> store.Looked:
    row, activity, look = owned.row, owned.state.activity, owned.facts.look
    own = activity if activity is not None and activity.node == name else None
    fresh = {key: seen for key, seen in look.seen.items() if seen.fresh} if look is not None and own is not None else {}
    return store.Looked(
        workflow=row.id,
        version=row.version,
        node=name,
        seq=own.seq if own is not None else None,
        attempt=own.number if own is not None else None,
        cause=store.cause(row.id, owned.using),
        verdict=Verdict.ALLOWED if refusal is None else refusal.verdict,
        reason="" if refusal is None else refusal.reason[:500],
        checks=dumps([[one.check, one.answer, one.digest] for one in answers]),
        names=list(fresh),
        versions=[seen.version for seen in fresh.values()],
        baseline=refusal is None and owned.definition is not None and name in owned.definition.baselines,
    )


def _looked(owned: Owned) -> Look:
    assert owned.facts.look is not None
    return owned.facts.look
