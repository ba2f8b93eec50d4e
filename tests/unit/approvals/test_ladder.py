"""Where the steps of a request are, in each of its statuses."""

from __future__ import annotations

import pytest

from approvals.core.ladder import RungState, calls, rungs
from approvals.core.status import RequestStatus

STEPS = [
    {"name": "Editors", "need": 2, "audience": {"role": "editors"}},
    {"name": "pool lawyers", "need": 1, "audience": {"pool": "lawyers"}},
]
DONE, NOW, LATER, STOPPED, UNREACHED = RungState


def states(**where: object) -> list[RungState]:
    known = {"step": 0, "given": 0, "status": "pending", "answer": "", **where}
    return [rung.state for rung in rungs(STEPS, **known)]  # type: ignore[arg-type]


@pytest.mark.req("F4", "F7")
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, [NOW, LATER]),
        ({"given": 1}, [NOW, LATER]),
        ({"step": 1}, [DONE, NOW]),
        ({"step": 1, "given": 1, "status": "approved", "answer": "approved"}, [DONE, DONE]),
        ({"step": 1, "given": 1, "status": "invalidated", "answer": "approved"}, [DONE, DONE]),
        ({"step": 1, "given": 1, "status": "revoked", "answer": "approved"}, [DONE, DONE]),
        ({"given": 1, "status": "denied", "answer": "denied"}, [STOPPED, UNREACHED]),
        ({"step": 1, "status": "changes_requested", "answer": "changes"}, [DONE, STOPPED]),
        ({"status": "expired"}, [STOPPED, UNREACHED]),
        ({"step": 1, "status": "cancelled"}, [DONE, STOPPED]),
    ],
)
def test_where_the_steps_are(where: dict[str, object], expected: list[RungState]) -> None:
    assert states(**where) == expected


def test_every_status_has_its_states() -> None:
    for status in RequestStatus:
        assert states(status=status.value)[0] in RungState


def test_how_many_approved_and_who_is_asked() -> None:
    first, second = rungs(STEPS, step=1, given=0, status="pending", answer="")
    assert (first.name, first.whom, first.given, first.need) == ("Editors", "editors", 2, 2)
    assert (second.whom, second.given, second.need) == ("pool lawyers", 0, 1)
    ended = rungs(STEPS, step=0, given=1, status="expired", answer="")
    assert [rung.given for rung in ended] == [1, 0]


def test_the_escalation_says_what_has_come() -> None:
    found = calls([{"audience": {"role": "a"}, "after": 3600.0}, {"audience": {"role": "b"}, "after": 7200.0}], 1)
    assert [(call.whom, call.after, call.came) for call in found] == [("a", 3600, True), ("b", 7200, False)]
