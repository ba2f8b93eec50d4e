"""What projects are given for their own tests: the fixture `outlast` and what stands behind it."""

from __future__ import annotations

import itertools
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.outcomes import Failed

from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Approval,
    Candidate,
    Commits,
    Deadline,
    Decision,
    Effect,
    End,
    Flow,
    Gate,
    Happened,
    Retry,
    Servicing,
    Visits,
    Wait,
    minutes,
)
from flows.core.effects import DidNotHappen
from flows.testing import NotThere
from tasks.testing import CannotCrash, NetworkRefused, Outlast, kit, plugin
from tasks.testing.plugin import outlast
from tests.factories import person

__all__ = ["outlast"]  # what the entry point gives to others

#: What the provider has done: operation → how often.
carried: dict[str, int] = {}
numbers = itertools.count(1)


def rent(attempt: Any) -> dict[str, str]:
    return {"reference": attempt.operation_id}


def hand_back(operation: Any) -> dict[str, bool]:
    return {"back": True}


def propose(attempt: Any) -> Candidate:
    return Candidate("pay", {"amount": "12.00", "round": attempt.visit})


def pay(attempt: Any) -> dict[str, str]:
    """A provider that takes the same operation for once."""
    carried[attempt.operation_id] = 1
    return {"paid": attempt.approved["value"]["amount"]}


def settle(attempt: Any) -> dict[str, str]:
    carried[attempt.operation_id] = carried.get(attempt.operation_id, 0) + 1
    return {"paid": "12.00"}


def asked(operation: Any) -> Any:
    return Happened({"paid": "12.00"}) if operation.id in carried else DidNotHappen()


def reach(attempt: Any) -> dict[str, bool]:
    try:
        socket.create_connection(("203.0.113.1", 443), timeout=0.1).close()
    except OSError as error:
        return {"refused": isinstance(error, NetworkRefused)}
    return {"refused": False}


class KitOrder(Flow):
    """Something is rented, an event is waited for, a person approves, it is paid."""

    rent = Activity(
        rent, commits=Commits("car", release=Servicing(hand_back, idempotent=True)), retry=Retry(max_attempts=3), then="paid"
    )
    paid = Wait("kit.paid", key=lambda state: state.input["order"], then="propose", deadline=Deadline(days=3, then=ESCALATE))
    propose = Decision(propose, choices={"pay": "ask"}, visits=Visits(3, then="stopped"))
    ask = Approval(
        candidate="propose",
        role="kit-finance",
        expires=Deadline(hours=24, then=ESCALATE),
        approved="pay",
        changes="propose",
        denied="stopped",
    )
    pay = Activity(pay, gate=Gate(approved_by="ask"), effect=Effect(reconcile=asked), retry=Retry(max_attempts=5), then="done")
    done = End(COMPLETE)
    stopped = End(FAILED)


class KitRent(Flow):
    """Rented, paid, handed back."""

    rent = Activity(
        rent, commits=Commits("car", release=Servicing(hand_back, idempotent=True)), effect=Effect(idempotent=True), then="pay"
    )
    pay = Activity(settle, effect=Effect(reconcile=asked), retry=Retry(max_attempts=5), then="done")
    done = End(COMPLETE)


class KitReach(Flow):
    """Reaches for another machine, and takes the refusal for an answer."""

    reach = Activity(reach, timeout=minutes(1), then="done")
    done = End(COMPLETE, result=lambda state: state.results["reach"])


def ordered(outlast: Outlast) -> Any:
    order = f"kit-{next(numbers)}"
    run = KitOrder.start({"order": order}, by=person("robin"))
    outlast.run()
    outlast.deliver("kit.paid", key=order)
    outlast.run()
    return run


def rented(outlast: Outlast) -> Any:
    run = KitRent.start({})
    outlast.until(run, status="complete")  # a release that nobody finished is looked at again after a while
    return run


@pytest.mark.req("V3")
@pytest.mark.parametrize("mode", [pytest.param("in a transaction", marks=pytest.mark.django_db), "with commits"])
def test_a_run_is_carried_to_its_end_with_and_without_a_transaction(outlast: Outlast, mode: str) -> None:
    run = ordered(outlast)
    outlast.assert_run(run, status="waiting", node="ask")
    outlast.assert_commitments(run, ("car", "active"))
    rita = outlast.reviewer(person("rita"), "kit-finance")
    outlast.decide(run, "changes", by=rita, comment="Again.")
    outlast.run()
    outlast.decide(run, "approve", by=rita)
    outlast.run()
    outlast.assert_run(run, status="complete", node="done")
    outlast.assert_operations(run, ("rent", "succeeded"), ("rent.car", "succeeded"), ("pay", "succeeded"))
    outlast.assert_commitments(run, ("car", "released"))


@pytest.mark.django_db
def test_time_passes_from_timer_to_timer(outlast: Outlast) -> None:
    run = KitOrder.start({"order": "late"})
    outlast.run()
    outlast.move(days=2)
    outlast.assert_run(run, status="waiting", node="paid", outcome="WAITING")
    outlast.until(run, outcome="HUMAN_REQUIRED")
    outlast.assert_run(run, node="paid", error_code="WAIT_EXPIRED")
    with pytest.raises(NotThere, match="it does not come to node done"):
        outlast.until(run, node="done")


@pytest.mark.django_db
def test_what_is_not_so_is_told_with_where_the_run_is(outlast: Outlast) -> None:
    run = KitOrder.start({"order": "other"}, by=person("robin"))
    outlast.run()
    for wrong in (
        lambda: outlast.assert_run(run, node="ask"),
        lambda: outlast.assert_operations(run),
        lambda: outlast.assert_commitments(run, ("car", "released")),
        lambda: outlast.decide(run, "approve", by=person("rita")),
    ):
        with pytest.raises(AssertionError, match=f"kit-order {run.id}, waiting WAITING at paid"):
            wrong()
    outlast.deliver("kit.paid", key="other")
    outlast.run()
    with pytest.raises(AssertionError, match="NOT_PERMITTED"):
        outlast.decide(run, "approve", by=person("nobody"))


@pytest.mark.req("T1", "V3")
def test_whatever_commit_a_worker_dies_at_the_run_ends_and_is_paid_once(outlast: Outlast) -> None:
    """Each of the points. The provider, which does not know an operation again, has been called once for each run."""
    points = 0
    for run in outlast.crashes(lambda: rented(outlast)):
        points += 1
        outlast.assert_run(run, status="complete", node="done")
        outlast.assert_commitments(run, ("car", "released"))
        assert {name: times for name, times in carried.items() if name.startswith(str(run.id))} == {f"{run.id}/pay/1": 1}
    assert points > 10


def test_one_death_at_a_point_of_ones_choice(outlast: Outlast) -> None:
    run = KitOrder.start({"order": "one"})
    outlast.run(crash_at=4)
    outlast.assert_run(run, status="waiting", node="paid")
    with pytest.raises(NotThere, match="there is no point 500"):
        outlast.run(crash_at=500)
    with pytest.raises(NotThere, match="the scenario passes no point"):
        list(outlast.crashes(lambda: None))
    with pytest.raises(CannotCrash, match="inside crashes"):
        list(outlast.crashes(lambda: outlast.run(crash_at=1)))


@pytest.mark.django_db
def test_inside_a_transaction_nobody_can_die(outlast: Outlast) -> None:
    with pytest.raises(CannotCrash, match=r"django_db\(transaction=True\)"):
        outlast.run(crash_at=0)


@pytest.mark.django_db
def test_a_refused_network_is_told_even_if_the_activity_swallows_it(outlast: Outlast) -> None:
    run = KitReach.start({})
    with pytest.raises(AssertionError, match=r"reached for 203\.0\.113\.1"):
        outlast.run()
    outlast.assert_run(run, status="complete")
    with pytest.raises(NetworkRefused, match=r"api\.example\.org"):
        socket.getaddrinfo("api.example.org", 443)
    with pytest.raises(AssertionError, match=r"api\.example\.org"):
        outlast.run()


@pytest.mark.django_db
@pytest.mark.outlast(network=True)
def test_a_network_may_be_allowed(outlast: Outlast, monkeypatch: Any) -> None:
    reached: list[Any] = []
    monkeypatch.setattr(socket, "create_connection", lambda address, **_: reached.append(address) or socket.socket())
    run = KitReach.start({})
    outlast.run()
    outlast.assert_run(run, status="complete")
    assert reached == [("203.0.113.1", 443)]


def test_real_workers_are_not_killed_here(transactional_db: None) -> None:
    with kit(real=True, patience=0.2) as real:
        with pytest.raises(CannotCrash, match="processes of their own"):
            real.run(crash_at=0)
        KitReach.start({})
        with pytest.raises(NotThere, match="real workers and Beat must be running"):
            real.run()


# ---------------------------------------------------------------- the plugin


def asked_for(*fixtures: str, django: bool = True, **marker: Any) -> Any:
    """Stands for pytest's request."""
    got: list[str] = []
    mark = SimpleNamespace(kwargs=marker) if marker else None
    manager = SimpleNamespace(hasplugin=lambda name: django)
    return SimpleNamespace(
        config=SimpleNamespace(pluginmanager=manager),
        node=SimpleNamespace(get_closest_marker=lambda name: mark),
        fixturenames=list(fixtures),
        getfixturevalue=got.append,
        got=got,
    )


def test_the_database_is_opened_as_the_test_says() -> None:
    for request, wanted in (
        (asked_for(), "db"),
        (asked_for(transaction=True), "transactional_db"),
        (asked_for("transactional_db"), "transactional_db"),
    ):
        plugin._open_database(request, real=False)
        assert request.got == [wanted]


def test_where_it_cannot_the_plugin_says_why() -> None:
    with pytest.raises(Failed, match="pip install pytest-django"):
        plugin._open_database(asked_for(django=False), real=False)
    with pytest.raises(Failed, match="real workers see only what is committed"):
        plugin._open_database(asked_for(), real=True)
