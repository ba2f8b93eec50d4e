"""What looks have recorded beside the log: a verdict, an observation or a verification that was edited, or is gone, is found and located."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from flows import COMPLETE, RESUME_PINNED, Activity, Candidate, Decision, End, Flow, Fresh, Gate, Verdict, Visits, hours, releases
from flows.core import errors
from flows.models import Observation, Verification
from flows.models import Verdict as VerdictRow
from flows.services.replay import replay
from flows.testing import LocalWorker
from tests.db.test_replay_drift import drift, edit, emptied
from tests.factories import row, work
from tests.support.releasing import both, flow_of, now_is

__all__ = ["emptied"]

pytestmark = pytest.mark.req("S1", "H1", "H2", "H4")

TAMPERS = True

Declare = Callable[..., type[Flow]]
#: What the probe says, one after another; the last stays. How many verifications fail.
seen: list[str] = []
wrong = {"left": 0}


def probe(attempt: Any) -> str:
    return seen.pop(0) if len(seen) > 1 else seen[0]


def check(attempt: Any) -> Any:
    if wrong["left"]:
        wrong["left"] -= 1
        raise errors.VerificationFailed
    return {"good": True}


def guarded(declare: Declare, worker: LocalWorker, versions: list[str], failures: int = 0) -> Any:
    """Propose ⇄ check ──► act (fresh, verified) ──► done; a refusal goes back to `propose`."""
    seen[:], wrong["left"] = versions, failures
    gate = Gate(fresh={"main": Fresh(probe, within=hours(4))}, verified_by="check", authority=())
    flow = declare(
        "t-looked",
        propose=Decision(
            lambda attempt: Candidate("go", {"n": attempt.visit}), choices={"go": "check"}, visits=Visits(9, then="done")
        ),
        check=Activity(check, verifies="propose", on={errors.VerificationFailed: "propose"}, then="act"),
        act=Activity(work, gate=gate, on={Verdict.REVALIDATION_REQUIRED: "propose"}, then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert row(run).status == "complete"
    (found,) = replay([run])
    assert found.drift is None
    return run


#: start 1, claim 2, completed (propose) 3, completed (check) 4, completed (act) 5
PROPOSED, CHECKED, ACTED = 3, 4, 5


def pick(model: Any, node: str, number: int = 0) -> int:
    return int(model.objects.filter(node=node).order_by("pk")[number].pk)


@pytest.mark.parametrize(
    ("node", "change", "seq", "field"),
    [
        ("check", "version = 'v9'", CHECKED, "state_versions of the verification by check"),
        ("act", "version = 'v9'", ACTED, "what fresh of act looked at"),
        ("check", "baseline = false", CHECKED, "observation of main"),
        ("act", "baseline = true", ACTED, "observation of main"),
        ("act", "node = 'check'", ACTED, "observation of main"),
        ("check", "at = at - interval '1 day'", ACTED, "what fresh of act looked at"),
        ("check", "name = 'other'", CHECKED, "observation of main"),
        ("propose", "attempt = 2", PROPOSED, "observation of main"),
    ],
)
def test_an_edited_observation(worker: LocalWorker, declare: Declare, node: str, change: str, seq: int, field: str) -> None:
    run = guarded(declare, worker, ["v1"])
    edit(f"UPDATE outlast_observation SET {change} WHERE id = %s", pick(Observation, node))
    found = drift(run)
    assert (found.seq, found.field) == (seq, field)


@pytest.mark.parametrize(("node", "seq"), [("propose", PROPOSED), ("check", CHECKED), ("act", ACTED)])
def test_a_deleted_observation(worker: LocalWorker, declare: Declare, node: str, seq: int) -> None:
    run = guarded(declare, worker, ["v1"])
    edit("DELETE FROM outlast_observation WHERE id = %s", pick(Observation, node))
    found = drift(run)
    assert (found.seq, found.field, found.recorded) == (seq, "observation of main", None)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("digest = 'sha256:other'", "digest"),
        ("revision = 7", "revision"),
        ("candidate_node = 'check'", "candidate_node"),
        ("passed = false", "passed"),
        ("code = 'X'", "code"),
        ("node = 'act'", "node"),
        ('state_versions = \'{"main": "v9"}\'', "state_versions"),
        ("state_versions = '{}'", "state_versions"),
    ],
)
def test_an_edited_verification(worker: LocalWorker, declare: Declare, change: str, field: str) -> None:
    run = guarded(declare, worker, ["v1"])
    edit(f"UPDATE outlast_verification SET {change} WHERE id = %s", pick(Verification, "check"))
    found = drift(run)
    assert (found.seq, found.field) == (CHECKED, f"{field} of the verification by check")


def test_a_failed_verification_that_was_made_a_passed_one(worker: LocalWorker, declare: Declare) -> None:
    run = guarded(declare, worker, ["v1"], failures=1)
    edit("UPDATE outlast_verification SET passed = true, code = '' WHERE id = %s", pick(Verification, "check"))
    assert (drift(run).seq, drift(run).field) == (CHECKED, "passed of the verification by check")


@pytest.mark.parametrize(("failures", "number"), [(0, 0), (1, 0), (1, 1)])
def test_a_deleted_verification(worker: LocalWorker, declare: Declare, failures: int, number: int) -> None:
    run = guarded(declare, worker, ["v1"], failures)
    edit("DELETE FROM outlast_verification WHERE id = %s", pick(Verification, "check", number))
    found = drift(run)
    assert (found.seq, found.field) == (CHECKED + 2 * number, "verification by check")
    assert (found.recorded, found.replayed) == (0, 1)


def test_an_invented_verification(worker: LocalWorker, declare: Declare) -> None:
    run = guarded(declare, worker, ["v1"])
    edit(
        "INSERT INTO outlast_verification (workflow_id, node, activity_seq, attempt, candidate_node, digest, revision, state_versions, "
        "passed, code, at) SELECT workflow_id, node, activity_seq + 1, attempt, candidate_node, 'other', revision, state_versions, "
        "passed, code, at FROM outlast_verification WHERE id = %s",
        pick(Verification, "check"),
    )
    assert (drift(run).seq, drift(run).field) == (ACTED, "verification by act")


def checks(node: str = "act") -> list[list[str]]:
    found: list[list[str]] = VerdictRow.objects.filter(node=node).order_by("pk")[0].checks
    return found


@pytest.mark.parametrize("name", ["intent", "definition", "candidate", "verification", "fresh", "budget"])
def test_an_edited_digest_of_a_check(worker: LocalWorker, declare: Declare, name: str) -> None:
    run = guarded(declare, worker, ["v1"])
    edited = [[check, answer, "0" * 16 if check == name else digest] for check, answer, digest in checks()]
    assert edited != checks()
    edit("UPDATE outlast_verdict SET checks = %s WHERE id = %s", json.dumps(edited), pick(VerdictRow, "act"))
    found = drift(run)
    assert (found.seq, found.field, found.recorded) == (ACTED, f"what {name} of act looked at", "0" * 16)


def test_a_check_that_was_taken_out_or_put_in(worker: LocalWorker, declare: Declare) -> None:
    run = guarded(declare, worker, ["v1"])
    sound, verdict = checks(), pick(VerdictRow, "act")
    edit("UPDATE outlast_verdict SET checks = %s WHERE id = %s", json.dumps([one for one in sound if one[0] != "fresh"]), verdict)
    assert drift(run).field == "check fresh of act"
    edit("UPDATE outlast_verdict SET checks = %s WHERE id = %s", json.dumps([*sound, ["authority", "holds", "x"]]), verdict)
    assert drift(run).field == "check authority of act"
    refused = [[one[0], "refused" if one[0] == "fresh" else one[1], one[2]] for one in sound]
    edit("UPDATE outlast_verdict SET checks = %s WHERE id = %s", json.dumps(refused), verdict)
    assert drift(run) == (ACTED, "check fresh of act", "refused", "holds")


@pytest.mark.parametrize("change", ["verdict = 'POLICY_BLOCKED'", "attempt = 2", "activity_seq = 2", "version = 1"])
def test_an_edited_pass(worker: LocalWorker, declare: Declare, change: str) -> None:
    run = guarded(declare, worker, ["v1"])
    edit(f"UPDATE outlast_verdict SET {change} WHERE id = %s", pick(VerdictRow, "act"))
    assert drift(run) == (ACTED, "verdict of act", None, "ALLOWED")


@pytest.mark.parametrize(("node", "seq"), [("propose", PROPOSED), ("check", CHECKED), ("act", ACTED)])
def test_a_deleted_pass(worker: LocalWorker, declare: Declare, node: str, seq: int) -> None:
    run = guarded(declare, worker, ["v1"])
    edit("DELETE FROM outlast_verdict WHERE id = %s", pick(VerdictRow, node))
    assert drift(run) == (seq, f"verdict of {node}", None, "ALLOWED")


#: propose and check see v1; act sees v2 and is refused (arrow 5); then everybody sees v2.
MOVED = ["v1", "v1", "v2"]


def test_a_refusal_follows_from_what_was_seen(worker: LocalWorker, declare: Declare) -> None:
    run = guarded(declare, worker, list(MOVED))
    assert [one.verdict for one in VerdictRow.objects.filter(node="act").order_by("pk")] == ["REVALIDATION_REQUIRED", "ALLOWED"]
    edit("UPDATE outlast_observation SET version = 'v1' WHERE id = %s", pick(Observation, "act"))
    assert (drift(run).seq, drift(run).field) == (ACTED, "what fresh of act looked at")


def test_a_deleted_refusal(worker: LocalWorker, declare: Declare) -> None:
    run = guarded(declare, worker, list(MOVED))
    edit("DELETE FROM outlast_verdict WHERE id = %s", pick(VerdictRow, "act"))
    assert drift(run) == (ACTED, "verdict of act", None, "REVALIDATION_REQUIRED")


def test_a_version_that_was_taken_back_in_the_record_is_found_where_it_was_stood_on(
    worker: LocalWorker, declare: Declare
) -> None:
    """The attempt's code and the gate ran on what the rows said then; all rows of it changed alike still differ from the gate's digest."""
    run = guarded(declare, worker, ["v1"])
    edit("UPDATE outlast_observation SET version = 'v0' WHERE id = %s", pick(Observation, "check"))
    edit("UPDATE outlast_verification SET state_versions = %s WHERE id = %s", '{"main": "v0"}', pick(Verification, "check"))
    assert drift(run).seq == ACTED
    assert "looked at" in drift(run).field


@pytest.mark.req("I1")
def test_the_release_that_a_pass_was_under(worker: LocalWorker, declare: Declare) -> None:
    both()
    run = guarded(declare, worker, ["v1"])
    sound, verdict = checks(), pick(VerdictRow, "act")
    edited = [[name, answer, "0" * 16 if name == "release" else digest] for name, answer, digest in sound]
    assert edited != sound
    edit("UPDATE outlast_verdict SET checks = %s WHERE id = %s", json.dumps(edited), verdict)
    assert drift(run) == (ACTED, "what release of act looked at", "0" * 16, "pinned to R17")
    edit("UPDATE outlast_verdict SET checks = %s WHERE id = %s", json.dumps(sound), verdict)
    edit("UPDATE outlast_workflow SET release = 'R18' WHERE id = %s", run.id)
    assert drift(run).field == "what release of propose looked at", "which no pin in the log explains"


@pytest.mark.req("I1")
def test_a_pin_in_the_row_is_one_in_the_log(worker: LocalWorker, declare: Declare) -> None:
    both()
    run = flow_of(declare, RESUME_PINNED).start({"key": "k"})
    worker.run()
    now_is("R18")
    assert releases.move(run, to="R18", by=None, reason="a test")
    (found,) = replay([run])
    assert found.drift is None
    edit("UPDATE outlast_workflow SET release = 'R17' WHERE id = %s", run.id)
    assert drift(run) == (row(run).version, "row release", "R17", "R18")
