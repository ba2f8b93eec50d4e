"""manage.py flows budget: how it stands, and more of it."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from flows import COMPLETE, Budget, Decision, End, Visits, budgets
from flows.models import BudgetEntry
from flows.testing import LocalWorker
from tests.factories import row
from tests.support.budgeting import intent_of, ledger, think
from tests.support.commanding import cli

__all__ = ["cli"]

pytestmark = pytest.mark.req("N1")


@pytest.fixture(autouse=True)
def people(transactional_db: None) -> None:
    """Ann may raise budgets, Cat may not."""
    get_user_model().objects.create_user("ann").user_permissions.add(Permission.objects.get(codename="raise_budget"))
    get_user_model().objects.create_user("cat")


@pytest.fixture
def run(declare: Any, worker: LocalWorker) -> Any:
    """A run whose two calls are used up."""
    flow = declare(
        "t-shell",
        meta={"budget": Budget(model_calls=2, cost="1.50")},
        think=Decision(think, choices={"go": "think", "stop": "done"}, visits=Visits(30, then="done")),
        done=End(COMPLETE),
    )
    started = flow.start({}, key="k")
    worker.run()
    assert row(started).error_code == "BUDGET_EXHAUSTED"
    return started


def test_show(cli: Any, run: Any) -> None:
    budgets.limit(run, cost="3.00", kept={"cost": "0.50"})
    ran = cli("budget", "show", "t-shell:k")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ran.code == 0
    assert lines[0] == ["OF", "KIND", "LIMIT", "SPENT", "RESERVED", "LEFT", "KEPT", "SOFT", "WARNED"]
    assert lines[1][:8] == ["workflow", "model_calls", "2", "2", "0", "0", "0", "1.6"]
    assert lines[2][:8] == ["intent", "cost", "3", "0", "0", "3", "0.5", "2.4"]
    assert ran.err == "2 ledgers\n"
    data = cli("budget", "show", run.id, "--json").json
    assert [(one["of"], one["kind"], one["allowance"], one["left"]) for one in data] == [
        ("workflow", "model_calls", 2, 0),
        ("intent", "cost", "3", "3"),
    ]


def test_show_before_anything_was_drawn(cli: Any, declare: Any) -> None:
    flow = declare("t-none", think=Decision(think, choices={"go": "done"}), done=End(COMPLETE))
    ran = cli("budget", "show", flow.start({}).id)
    assert (ran.code, ran.out, ran.err) == (0, "", "no budget was drawn on so far\n")


def test_raise(cli: Any, run: Any) -> None:
    ran = cli("budget", "raise", run.id, "model_calls", "--by-amount", 3, "--reason", "worth it", "--by", "ann")
    assert (ran.code, ran.out, ran.err) == (0, "5\n", "model_calls raised; 1 run goes on\n")
    assert row(run).status == "runnable"
    entry = BudgetEntry.objects.get(entry="raised")
    assert (entry.by_label, entry.reason) == ("ann", "worth it")
    data = cli("budget", "raise", run.id, "model_calls", "--to", 7, "--reason", "more", "--by", "ann", "--json").json
    assert data == {"code": "raised", "kind": "model_calls", "allowance": 7, "resumed": [], "lacking": {}}


def test_raise_of_the_intent_and_what_is_still_missing(cli: Any, run: Any) -> None:
    budgets.limit(run, model_calls=2)
    ran = cli("budget", "raise", run.id, "model_calls", "--intent", "--to", 4, "--reason", "x", "--by", "ann")
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "model_calls raised; 0 runs go on",
        f"{run.id} still lacks: the workflow's budget of model_calls is used up: 2 spent and 0 reserved of 2; one attempt needs 1",
    ]
    assert (ledger(intent_of(run)).allowance, ledger(run).allowance) == (4, 2)


SAID = ("--reason", "so much for all of it", "--by", "ann")


def test_limit(cli: Any, run: Any) -> None:
    ran = cli("budget", "limit", run.id, "model_calls=100", "cost=20.50", "--keep", "cost=0.50", "--soft", "0.5", *SAID)
    assert (ran.code, ran.err) == (0, "2 ledgers of the intent\n")
    assert [line.split()[:3] for line in ran.out.splitlines()[1:]] == [
        ["intent", "model_calls", "100"],
        ["intent", "cost", "20.5"],
    ]
    made = ledger(intent_of(run), "cost")
    assert (made.allowance, made.soft, made.kept) == (Decimal("20.5"), Decimal("10.25"), Decimal("0.5"))
    entry = BudgetEntry.objects.filter(budget=made).latest("pk")
    assert (entry.by_label, entry.reason) == ("ann", "so much for all of it")
    data = cli("budget", "limit", "t-shell:k", "model_calls=7", *SAID, "--json").json
    assert [(one["of"], one["kind"], one["allowance"]) for one in data] == [
        ("intent", "model_calls", 7),
        ("intent", "cost", "20.5"),
    ]
    assert row(run).status == "waiting", "its own budget is still used up"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["model_calls=9", "--reason", "x", "--by", "cat"], 1, "needs the permission outlast_flows.raise_budget"),
        (["model_calls=9", "--reason", " ", "--by", "ann"], 1, "Say why that is the limit"),
        (["model_calls=9", "--by", "ann"], 2, "required: --reason"),
        (["model_calls=9", "--reason", "x"], 2, "required: --by"),
        (list(SAID), 2, "required: KIND=N"),
        (["model_calls", *SAID], 2, "'model_calls' is not KIND=N"),
        (["calls=9", *SAID], 1, "there is no budget of 'calls'"),
        (["model_calls=many", *SAID], 1, "which is no number"),
        (["model_calls=1", "model_calls=2", *SAID], 2, "model_calls is limited twice"),
        (["model_calls=1", "--keep", "model_calls=2", *SAID], 1, "keeps more model_calls than it allows"),
        (["model_calls=1", "--soft", "2", *SAID], 1, "the share at which to warn, above 0 and at most 1"),
        (["model_calls=1", "--to", "2", *SAID], 2, "unrecognized arguments: --to"),
    ],
)
def test_what_is_no_limit(cli: Any, run: Any, arguments: list[str], code: int, message: str) -> None:
    ran = cli("budget", "limit", run.id, *arguments)
    assert ran.code == code, ran
    assert message in re.sub(r"\s+", " ", ran.err)
    assert not budgets.of(intent=run.intent_id)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["model_calls", "--to", "9", "--reason", "x", "--by", "cat"], 1, "You may not raise a budget"),
        (["model_calls", "--to", "9", "--reason", " ", "--by", "ann"], 1, "Say why"),
        (["model_calls", "--to", "1", "--reason", "x", "--by", "ann"], 1, "The limit of model_calls is 2 already"),
        (
            ["tool_calls", "--to", "9", "--reason", "x", "--by", "ann"],
            1,
            "has no limit of tool_calls that could be raised. Limited are",
        ),
        (["model_calls", "--to", "x", "--reason", "x", "--by", "ann"], 1, "which is no number"),
        (["model_calls", "--to", "9", "--reason", "x", "--by", "nobody"], 1, "There is no user 'nobody'"),
        (["model_calls", "--reason", "x", "--by", "ann"], 2, "one of the arguments --by-amount --to is required"),
        (["--to", "9"], 2, "required: KIND, --reason, --by"),
        (["model_calls", "--to", "9", "--by-amount", "1"], 2, "not allowed with"),
        (["calls", "--to", "9"], 2, "invalid choice: 'calls'"),
    ],
)
def test_what_is_refused(cli: Any, run: Any, arguments: list[str], code: int, message: str) -> None:
    ran = cli("budget", "raise", run.id, *arguments)
    assert ran.code == code, ran
    assert message in re.sub(r"\s+", " ", ran.err)
    assert ledger(run).allowance == 2
