"""Mistakes about capacity and admission are found with their way out."""

from __future__ import annotations

from typing import Any

import pytest

from flows import BREACH, CANCEL, COMPLETE, ESCALATE, Activity, Admission, Deadline, End
from flows.core import lint
from flows.core.errors import DefinitionError
from flows.core.lint import PREFIX
from tests.support.flow_values import declare, work

pytestmark = pytest.mark.req("G5", "R2")


def found(meta: dict[str, Any] | None = None, **options: Any) -> list[str]:
    definition = declare(meta=meta or {}, one=Activity(work, then="done", **options), done=End(COMPLETE))
    return [one.id.removeprefix(PREFIX) for one in lint.problems(definition)]


def test_what_is_right_is_right() -> None:
    assert found(needs="payments", limits=["a", "b"], patience=Deadline(hours=1, then="done")) == []
    assert found(patience=None) == []
    assert found({"admission": Admission(total=3, patience=Deadline(hours=1, then=CANCEL))}) == []
    assert found({"deadline": Deadline(hours=1, then=CANCEL)}) == [], "the default patience is nobody's mistake"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"needs": 3}, "E027"),
        ({"limits": [""]}, "E027"),
        ({"patience": 3}, "E027"),
        ({"needs": "a", "patience": None}, "E090"),
        ({"patience": Deadline(hours=1, then=BREACH)}, "E051"),
        ({"patience": Deadline(hours=1, then="nowhere")}, "E006"),
    ],
)
def test_options_of_a_node(options: dict[str, Any], code: str) -> None:
    assert code in found(**options), found(**options)


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({"admission": 3}, "E027"),
        ({"admission": Admission(total=1, patience=Deadline(hours=1, then="done"))}, "E089"),
        ({"admission": Admission(total=1, patience=Deadline(hours=1, then=BREACH))}, "E089"),
    ],
)
def test_options_of_a_flow(meta: dict[str, Any], code: str) -> None:
    assert code in found(meta)


def test_a_patience_beyond_the_end_of_the_flow() -> None:
    meta = {"deadline": Deadline(hours=1, then=CANCEL)}
    assert found(meta, patience=Deadline(hours=2, then=ESCALATE)) == ["W005"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"per": 3}, "counts by key"),
        ({"total": 0}, "at least 1"),
        ({"total": "3"}, "Write Admission"),
        ({"over": "defer"}, "Write Admission"),
        ({"debounce": 5}, "Write Admission"),
        ({"patience": 5}, "Write Admission"),
    ],
)
def test_an_admission_is_looked_at_when_it_is_made(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        Admission(**options)
