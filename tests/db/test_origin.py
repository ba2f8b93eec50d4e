"""Where a run comes from is written with its start, and read with its claim."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from flows.core.budget import Ledger
from flows.core.ids import new_id
from flows.core.protocol import BudgetKind
from flows.services.starting import Origin, start_runs
from flows.store import budgets
from flows.testing import LocalWorker
from tests.factories import Line, row, take_one

pytestmark = pytest.mark.req("N1", "E4")

USING = "default"


def test_all_that_runs_share_is_on_each_of_them(worker: LocalWorker) -> None:
    parent = Line.start({}, key="parent")
    above, ids = new_id(), [new_id(), new_id()]
    rank = datetime(2020, 1, 1, tzinfo=UTC)
    origin = Origin(
        intent=parent.intent_id, parent=parent.id, depth=2, ledgers=(above, parent.id), chain=above, rank=rank, priority=3,
        tenant="acme", started_by="child", ids=ids,
    )  # fmt: skip
    made = start_runs(Line.definition, [("a", {}), (None, {})], origin, USING)
    assert [one.id for one in made] == ids
    for one in made:
        found = row(one)
        assert (found.intent_id, found.parent_id, found.depth, found.chain) == (parent.intent_id, parent.id, 2, above)
        assert (found.rank, found.priority, found.tenant, found.started_by) == (rank, 3, "acme", "child")
        assert found.ledgers == [above, parent.id, one.id]
    claimed = take_one(worker).row
    assert claimed.id in ids, "its rank comes first"
    assert (claimed.parent_id, claimed.ledgers, claimed.chain) == (parent.id, [above, parent.id, claimed.id], above)
    assert claimed.opened_at is not None


def test_a_start_of_its_own_has_none_of_it(worker: LocalWorker) -> None:
    made = row(Line.start({}))
    assert (made.parent_id, made.ledgers, made.chain, made.depth, made.slots, made.tenant, made.started_by) == (
        *(None, None, None), 0, 0, "", "",
    )  # fmt: skip
    claimed = take_one(worker).row
    assert (claimed.parent_id, claimed.ledgers, claimed.chain) == (None, None, None)


def test_ledgers_of_ancestors_are_read_with_the_own_ones() -> None:
    parent, child = Line.start({}, key="p"), Line.start({}, key="c")
    declared = Ledger(None, True, BudgetKind.MODEL_CALLS, Decimal(5), Decimal(4), Decimal(0), Decimal(0), Decimal(0))
    for one in (parent, child):
        budgets.make(one.id, [declared], USING)
    kinds = [BudgetKind.MODEL_CALLS.value]
    assert [one.own for one in budgets.ledgers(child.id, None, kinds, USING)] == [True]
    along = budgets.ledgers(child.id, None, kinds, USING, along=[parent.id, child.id])
    assert [one.own for one in along] == [False, True]
    assert along == sorted(along, key=lambda one: one.id or 0), "in the order in which they are locked"
