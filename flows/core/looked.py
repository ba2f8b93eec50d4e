"""What looks have recorded beside the log (verdicts, observations, verifications), judged again: each is there, and says what the others say.

    verdict        each attempt that ended well had passed, where its node has a gate; the digest of each check is that of the facts on record
    observation    each name that the node looks at was seen by the attempt that passed; another version is another digest
    verification   each attempt of a verifier that says of a candidate that it is good, or not, has left one of just that candidate,
                   and of the versions that the attempt saw

These rows are append-only, and what they say follows from one another; so one that was edited or is gone is found at the arrow that ended the
attempt, or at the next gate that stands on it. Not on record, and so not judged here: the facts of policies and approvals at that moment
(approvals are judged by the decision itself). Which release was current no row says: it must have been some release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from flows.core import gate as gates
from flows.core.course import Course
from flows.core.definition import Definition
from flows.core.errors import Route
from flows.core.history import Drift, Judged, Logged, Observed, Verified
from flows.core.nodes import candidate_of
from flows.core.nodes.activity import Activity
from flows.core.nodes.base import Node
from flows.core.nodes.pipeline import Pipeline
from flows.core.protocol import IntentStatus
from flows.core.requirements import Fresh, Gate
from flows.core.state import ActivityState, Completed, Facts, Failed, Look, ReleaseFact, Seen, State, Trigger, VerificationFact
from flows.core.verdicts import Verdict

#: Checks whose facts are rows of others, as they were then.
ELSEWHERE = frozenset({"policy", "release", "approval"})
#: Where one of these refused, the facts of the others are known all the same.
RECORDED = frozenset({"intent", "definition", "candidate", "verification", "fresh"})


def look(course: Course, judged: Judged, definition: Definition, node: Node) -> Look:
    """The look behind a verdict, as far as rows say it; of the rest, that it held."""
    gate, mine = node.gate or Gate(), _key(judged)
    nodes = definition.baselines_of(node.name)
    seen: dict[str, Seen] = {}
    baseline: dict[str, Seen] = {}
    for row in course.history.observed:
        at, found = (row.activity, row.attempt), Seen(row.version, row.at)
        if at < mine and row.baseline and row.node in nodes and _ended_well(course, definition, at):
            baseline[row.name] = found
        if at == mine or (at < mine and _may_reuse(gate.probes.get(row.name), row, judged)):
            seen[row.name] = found
    verifications = {
        row.node: VerificationFact(row.digest, row.passed, row.revision, row.versions)
        for row in course.history.verified
        if (row.activity, row.attempt) < mine
    }
    return Look(
        seen=seen,
        baseline=baseline,
        verifications=verifications,
        commitments=dict.fromkeys(gate.commitments, "active"),
        authority=dict.fromkeys(gate.authority, ""),
    )


def _ended_well(course: Course, definition: Definition, attempt: tuple[int, int]) -> bool:
    """An attempt that did, and of a pipeline the one that ended it."""
    tried, visit = course.history.attempts.get(attempt), course.history.visits.get(attempt[0])
    node = definition.nodes.get(visit.node) if visit is not None else None
    whole = not isinstance(node, Pipeline) or (visit is not None and visit.step == node.steps[-1].name)
    return whole and tried is not None and tried.outcome == "succeeded"


def _is_taken(state: State) -> bool:
    """Whether the result is that of an effect which was known to have happened: that is taken without a pass."""
    return state.activity is not None and state.activity.known


def _key(judged: Judged) -> tuple[int, int]:
    return judged.activity or 0, judged.attempt or 0


def _may_reuse(probe: Fresh | None, row: Observed, judged: Judged) -> bool:
    return probe is not None and judged.at - row.at < probe.reuse


def of_refusal(course: Course, t: Logged) -> Judged | None:
    """The verdict of the refusal behind this arrow: it was written before the arrow, and before one that pinned a release."""
    rows = course.history.judged.get(t.seq - 2 if course.pin is not None else t.seq - 1, ())
    return next((one for one in reversed(rows) if one.verdict != Verdict.ALLOWED), None)


def drifts(course: Course, t: Logged, definition: Definition, state: State, trigger: Trigger | None) -> Iterator[Drift]:
    """Where the rows of the attempt that this arrow ended say something else than its log and each other."""
    activity = course.activity
    if activity is None or (node := definition.nodes.get(activity.node)) is None:
        return
    mine = [one for one in course.history.judged.get(course.seq, ()) if _key(one) == (activity.seq, activity.number)]
    passed = next((one for one in mine if one.verdict == Verdict.ALLOWED), None)
    if isinstance(trigger, Completed) and definition.passes(node.name) and passed is None and not _is_taken(state):
        yield Drift(t.seq, f"verdict of {node.name}", None, str(Verdict.ALLOWED))
    if passed is not None:
        yield from _observed(course, t, definition, node, passed)
        yield from _checked(course, t, definition, node, passed, state)
    refusal = of_refusal(course, t) if t.trigger == "refused" else None
    if refusal is not None and refusal.activity == activity.seq and refusal.node == node.name:
        yield from _checked(course, t, definition, node, refusal, state)
    if trigger is not None:
        yield from _verified(course, t, node, activity, state, trigger)


def _observed(course: Course, t: Logged, definition: Definition, node: Node, passed: Judged) -> Iterator[Drift]:
    """The attempt has looked at all that its node looks at; another's look may do only where the probe may be reused."""
    always = node.name in definition.baselines
    probes = definition.probes if always else (node.gate or Gate()).probes
    own = {row.name: row for row in course.history.observed if (row.activity, row.attempt) == _key(passed)}
    for name, probe in probes.items():
        row = own.get(name)
        if row is None and (always or not probe.reuse):
            yield Drift(t.seq, f"observation of {name}", None, f"seen by attempt {passed.attempt} of {node.name}")
        elif row is not None and (row.node, row.baseline) != (node.name, always):
            said = (node.name, "a baseline" if always else "no baseline")
            yield Drift(t.seq, f"observation of {name}", (row.node, "a baseline" if row.baseline else "no baseline"), said)
    for name in own.keys() - probes.keys():
        yield Drift(t.seq, f"observation of {name}", own[name].version, None)


def _checked(course: Course, t: Logged, definition: Definition, node: Node, judged: Judged, state: State) -> Iterator[Drift]:
    """Each check had the facts that are on record; `old` depends on the moment, which lies between the claim and the verdict."""
    facts = Facts(
        intent_version=state.intent_version,
        intent_status=IntentStatus.ACTIVE,
        fingerprint=definition.fingerprint,
        look=look(course, judged, definition, node),
    )
    late, early = (gates.digests(definition, node, replace(state, now=now), facts) for now in (judged.at, course.at or judged.at))
    allowed = judged.verdict == Verdict.ALLOWED
    answers = {name: (answer, digest) for name, answer, digest in judged.checks}
    if allowed and "release" in answers and answers["release"][1] not in _releases(course, definition, node, state, facts):
        yield Drift(t.seq, f"what release of {node.name} looked at", answers["release"][1], f"pinned to {course.pinned}")
    for name, digest in late.items():
        if name in ELSEWHERE or (not allowed and name not in RECORDED):
            continue
        answer, recorded = answers.pop(name, ("", ""))
        if not answer:
            if allowed:
                yield Drift(t.seq, f"check {name} of {node.name}", None, gates.HOLDS)
            continue
        if allowed and answer == gates.REFUSED:
            yield Drift(t.seq, f"check {name} of {node.name}", answer, gates.HOLDS)
        if recorded not in (digest, early.get(name)) and (
            allowed or answer != gates.REFUSED or name in ("verification", "fresh")
        ):
            yield Drift(t.seq, f"what {name} of {node.name} looked at", recorded, digest)
    if allowed:
        for name in answers.keys() - ELSEWHERE:
            yield Drift(t.seq, f"check {name} of {node.name}", answers[name][0], None)


def _releases(course: Course, definition: Definition, node: Node, state: State, facts: Facts) -> Iterator[str]:
    """The digests that the check of releases may have had: pinned as the log says, beside any that may have been current then."""
    for current in (course.pinned, "", *sorted(course.history.releases)):
        yield gates.digests(definition, node, state, replace(facts, release=ReleaseFact(course.pinned, current)))["release"]


def _verified(course: Course, t: Logged, node: Node, activity: ActivityState, state: State, trigger: Trigger) -> Iterator[Drift]:
    """What the attempt says of the candidate is on record, and of just that candidate."""
    verifies = node.verifies if isinstance(node, Activity) else ""
    failed = trigger.failure if isinstance(trigger, Failed) and trigger.failure.route is Route.VERIFY else None
    candidate = candidate_of(state, verifies) if verifies else None
    mine = (activity.seq, activity.number)
    rows: list[Verified] = [one for one in course.history.verified if (one.activity, one.attempt) == mine]
    whole = not isinstance(node, Pipeline) or activity.step == node.steps[-1].name
    says = candidate is not None and ((isinstance(trigger, Completed) and whole) or failed is not None)
    if not says or not rows:
        if says or rows:
            yield Drift(t.seq, f"verification by {node.name}", len(rows), int(says))
        return
    assert candidate is not None
    own = {row.name: row.version for row in course.history.observed if (row.activity, row.attempt) == mine}
    (row,) = rows[:1]
    expected: Mapping[str, object] = {
        "node": node.name,
        "candidate_node": verifies,
        "digest": candidate["digest"],
        "revision": int(candidate.get("revision") or 1),
        "passed": failed is None,
        "code": failed.code if failed is not None else "",
        "state_versions": {**row.versions, **own},
    }
    recorded = dict(
        zip(expected, (row.node, row.of, row.digest, row.revision, row.passed, row.code, dict(row.versions)), strict=True)
    )
    for field, value in expected.items():
        if recorded[field] != value:
            yield Drift(t.seq, f"{field} of the verification by {node.name}", recorded[field], value)
