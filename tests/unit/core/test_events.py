"""What is known of events beside their content."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from flows import About, EventType, Order, minutes
from flows.core import lint
from flows.core.declared import DECLARED
from flows.core.errors import PayloadError


def test_about_takes_an_id_as_text() -> None:
    run = uuid4()
    about = About(workflow=str(run), epoch=0, intent=1, wait=7)  # type: ignore[arg-type]
    assert (about.workflow, bool(about), bool(About()), bool(About(wait=7))) == (run, True, False, True)
    assert isinstance(about.workflow, UUID)


@pytest.mark.parametrize(
    "given",
    [
        {"workflow": "no id"},
        {"workflow": uuid4(), "epoch": -1},
        {"workflow": uuid4(), "epoch": True},
        {"workflow": uuid4(), "intent": 2**31},
        {"wait": 2**63},
        {"wait": "7"},
        {"epoch": 1},
    ],
)
def test_about_refuses_what_cannot_be(given: dict[str, Any]) -> None:
    with pytest.raises(PayloadError, match="About"):
        About(**given)


@pytest.mark.parametrize(
    ("order", "payload", "position"),
    [("seq", {"seq": 3}, 3), ("order.seq", {"order": {"seq": 0}}, 0), (lambda payload: payload["a"] + 1, {"a": 1}, 2)],
)
def test_a_position_is_read(order: Any, payload: dict[str, Any], position: int) -> None:
    assert a_type(order=order).position(payload) == position


@pytest.mark.parametrize(
    ("order", "payload"),
    [
        ("seq", {}),
        ("seq", {"seq": "3"}),
        ("seq", {"seq": -1}),
        ("seq", {"seq": True}),
        ("a.b", {"a": 3}),
        (lambda payload: payload["gone"], {}),
        (None, {"seq": 1}),
    ],
)
def test_what_has_no_position_is_refused(order: Any, payload: dict[str, Any]) -> None:
    with pytest.raises(PayloadError, match=r"the position of an event t\.ordered"):
        a_type(order=order).position(payload)


def a_type(**options: Any) -> EventType:
    made = EventType("t.ordered", policy=Order.IN_ORDER, **options)
    DECLARED.remove(made)
    return made


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": "in order"}, "policy is 'in order'"),
        ({"policy": Order.ANY, "order": "seq"}, "means nothing without a policy"),
        ({"order": ""}, "neither a path"),
        ({"order": "a..b"}, "neither a path"),
        ({"order": 3}, "neither a path"),
        ({"first": -1}, "no position"),
        ({"first": True}, "no position"),
        ({"gap": 60}, "no span"),
        ({"gap": minutes(0)}, "no span"),
    ],
)
def test_an_order_that_is_none_is_found(options: dict[str, Any], said: str) -> None:
    made = EventType("t.ordered", **{"policy": Order.IN_ORDER, **options})
    DECLARED.remove(made)
    (problem,) = lint.events.orders_are_orders([made])
    assert (problem.id[-4:], said in problem.message) == ("E082", True)


def test_an_order_that_is_one_is_not_complained_about() -> None:
    assert list(lint.events.orders_are_orders([a_type(order="seq"), a_type()])) == []
