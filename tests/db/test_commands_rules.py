"""manage.py flows policy, competence: published, adopted, opened again; by those who may, and with a word for everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model

import flows
from flows import COMPLETE, Activity, Competence, Decision, End, Gate, Visits, policies
from flows import errors as kinds
from flows.models import Competence as Envelope
from flows.models import CompetenceOpening, Policy, Transition
from flows.store import gate as store
from flows.testing import LocalWorker
from tests import factories
from tests.factories import work
from tests.support.commanding import Ran, cli

__all__ = ["cli"]

Cli = Callable[..., Ran]

pytestmark = pytest.mark.req("H1", "L1")


@pytest.fixture
def people(transactional_db: None) -> Any:
    get_user_model().objects.create_user("nobody")
    return get_user_model().objects.create_superuser("ann")


def bound(declare: Any, **nodes: Any) -> type[flows.Flow]:
    found: type[flows.Flow] = declare(
        "t-bound",
        meta={"policy": "payments"},
        one=Activity(work, queue="late", then="two"),
        two=Activity(work, then="done"),
        done=End(COMPLETE),
    )
    return found


@pytest.mark.parametrize("verb", [("policy", "list"), ("competence", "list"), ("competence", "history")])
def test_a_list_of_nothing_says_so(verb: tuple[str, str], worker: LocalWorker, cli: Cli) -> None:
    ran = cli(*verb)
    assert (ran.code, ran.out, ran.err) == (0, "", "0 shown\n")


def test_a_policy_is_published_once_and_adopted_by_a_person(
    people: Any, worker: LocalWorker, declare: Any, tmp_path: Path, cli: Cli
) -> None:
    body = tmp_path / "body.json"
    body.write_text('{"limit": 5}')
    first = cli("policy", "publish", "payments", "--body", body, "--note", "first", "--by", "ann", "--json")
    again = cli("policy", "publish", "payments", "--body", body, "--note", "first", "--by", "ann", "--json")
    assert [ran.json for ran in (first, again)] == [
        {"name": "payments", "version": 1, "created": True},
        {"name": "payments", "version": 1, "created": False},
    ]
    run = bound(declare).start({})
    assert factories.row(run).policy_version == "payments@1"
    policies.publish("payments", {"limit": 4}, blocks=False)
    policies.publish("payments", {"limit": 3})
    worker.run(["late"])
    assert factories.status(run)[:2] == ("waiting", "POLICY_BLOCKED")
    assert "accepted" in cli("policy", "adopt", run.id, "--reason", "seen", "--by", "ann").out
    worker.run(["late", "agents"])
    assert factories.status(run)[:2] == ("complete", "COMPLETE")
    move = Transition.objects.get(workflow_id=run.id, trigger="policy")
    assert (move.trigger_ref, move.policy_version, move.note) == ("payments@1", "payments@3", {"reason": "seen", "by": "ann"})
    assert [row["version"] for row in cli("policy", "list", "--json").json] == [3, 2, 1]


def test_a_version_that_goes_on_stops_nobody(people: Any, worker: LocalWorker, declare: Any) -> None:
    policies.publish("payments", {"limit": 5})
    run = bound(declare).start({})
    policies.publish("payments", {"limit": 4}, blocks=False)
    worker.run(["late", "agents"])
    assert (factories.row(run).status, factories.row(run).policy_version) == ("complete", "payments@1")


def test_what_a_policy_says_is_kept_against_raw_sql(people: Any) -> None:
    from django.db import DatabaseError, transaction

    policies.publish("payments", {"limit": 5}, note="x", by=people)
    for change in (lambda rows: rows.update(body={"limit": 6}), lambda rows: rows.delete()):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change(Policy.objects.all())
    people.delete()
    assert Policy.objects.values_list("by", "by_label").get() == (None, "ann")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["policy", "publish", "payments", "--body", "nowhere.json", "--note", "x", "--by", "ann"], "nowhere.json"),
        (["policy", "adopt", "00000000-0000-0000-0000-000000000000", "--reason", "x", "--by", "nobody"], "publish_policy"),
        (["competence", "open", "t-bound", "propose", "--reason", "x", "--by", "ann"], "no closed envelope"),
        (["competence", "open", "t-bound", "propose", "--reason", "x", "--by", "nobody"], "open_competence"),
        (["competence", "open", "t-bound", "propose", "--reason", " ", "--by", "ann"], "Say why the envelope is opened again"),
        (["competence", "open", "t-bound", "propose", "--reason", "x", "--by", ""], "may not do this"),
        (["policy", "publish", "p", "--body", "pyproject.toml", "--by", "ann"], "--note"),
    ],
)
def test_what_is_wrong_is_said(people: Any, cli: Cli, arguments: list[str], said: str) -> None:
    ran = cli(*arguments)
    assert ran.code in (1, 2)
    assert said in ran.err


def test_bad_policies_are_refused_and_nothing_is_kept(people: Any, worker: LocalWorker, declare: Any) -> None:
    for name, body in (("", {}), ("a@b", {}), ("p", ["x"]), ("p", {"x": float("nan")})):
        with pytest.raises(kinds.PayloadError):
            policies.publish(name, body)  # type: ignore[arg-type]
    assert not Policy.objects.exists()
    with pytest.raises(policies.UnknownPolicy, match="None is published"):
        policies.current("payments")
    with pytest.raises(policies.NotBound, match="t-line"):
        policies.adopt(factories.Line.start({}), reason="x")


@pytest.mark.req("H4")
def test_failed_verifications_close_the_envelope_until_a_person_opens_it(
    people: Any, worker: LocalWorker, declare: Any, cli: Cli
) -> None:
    """Two may fail; the third closes it, for every run of that flow."""
    wrong = {"left": 3}

    def check(attempt: Any) -> Any:
        if wrong["left"]:
            wrong["left"] -= 1
            raise kinds.VerificationFailed
        return {"passed": True}

    flow = declare(
        "t-envelope",
        propose=Decision(
            lambda attempt: flows.Candidate("go", attempt.visit), choices={"go": "check"}, visits=Visits(9, then="done")
        ),
        check=Activity(check, verifies="propose", on={kinds.VerificationFailed: "propose"}, then="act"),
        act=Activity(work, gate=Gate(verified_by="check", competence=Competence("propose", errors=2)), then="done"),
        done=End(COMPLETE),
    )
    run = flow.start({})
    worker.run()
    assert (factories.row(run).status, factories.row(run).error_code) == ("waiting", "COMPETENCE_EXCEEDED")
    assert Envelope.objects.values_list("flow_name", "node", "burned", "allowed").get() == ("t-envelope", "propose", 3, 2)
    other = flow.start({})
    worker.run()
    assert factories.row(other).error_code == "COMPETENCE_EXCEEDED"
    assert list(factories.row(run).verifications.order_by("id").values_list("passed", "code")) == [
        *[(False, "VERIFICATION_FAILED")] * 3,
        (True, ""),
    ]
    ran = cli("competence", "open", "t-envelope", "propose", "--reason", "prompt mended", "--by", "ann", "--resume", "--json")
    assert (ran.code, ran.json["opened"], set(ran.json["resumed"])) == (0, True, {str(run.id), str(other.id)})
    assert ran.json["left"] == {}
    assert cli("competence", "open", "t-envelope", "propose", "--reason", "x", "--by", "ann", "--resume").code == 1
    worker.run()
    assert {factories.row(one).status for one in (run, other)} == {"complete"}
    assert "prompt mended" in cli("competence", "list").out
    history = cli("competence", "history", "--json").json
    assert [(one["flow"], one["node"], one["errors"], one["by"], one["reason"]) for one in history] == [
        ("t-envelope", "propose", 3, "ann", "prompt mended")
    ]


def test_without_resume_the_runs_that_it_stopped_are_named(people: Any, worker: LocalWorker, declare: Any, cli: Cli) -> None:
    flow = declare(
        "t-envelope",
        act=Activity(work, gate=Gate(competence=Competence("propose", errors=0)), then="done"),
        propose=Decision(work, choices={"go": "act"}),
        done=End(COMPLETE),
    )
    store.burn("t-envelope", "propose", "", 0, "default")
    run = flow.start({})
    worker.run()
    assert factories.row(run).error_code == "COMPETENCE_EXCEEDED"
    ran = cli("competence", "open", "t-envelope", "propose", "--reason", "x", "--by", "ann")
    assert (ran.code, factories.status(run)[0]) == (0, "waiting")
    assert f"flows resume {run.id}" in ran.err + ran.out
    assert cli("competence", "open", "t-envelope", "propose", "--reason", "and on", "--by", "ann", "--resume").code == 0
    worker.run()
    assert factories.row(run).status == "complete"
    assert CompetenceOpening.objects.count() == 1
