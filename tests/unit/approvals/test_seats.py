"""Places, ladders that cannot be filled, and parts of a candidate."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.core import seats
from approvals.core.narrow import BadPart, narrowed
from approvals.models.wording import asked_in_words
from flows.core import canonical


def test_an_audience_goes_into_a_key_and_comes_out_of_it() -> None:
    asked = {"role": 'a "b" ü', "pool": "p"}
    assert seats.audience(seats.key(asked)) == asked
    assert seats.key({"pool": "p", "role": "r"}) == seats.key({"role": "r", "pool": "p"})


STEPS = [
    {"name": "Legal", "need": 2, "audience": {"role": "lawyers"}},
    {"name": "b", "need": 1, "audience": {"pool": "b"}},
]
ESCALATION = [{"after": 1, "audience": {"role": "lawyers"}}, {"after": 2, "audience": {"permission": "a.b"}}]


def test_who_may_answer_now_are_the_step_and_those_it_was_escalated_to() -> None:
    assert seats.open_to(STEPS, 1, ESCALATION, 0) == ['{"pool":"b"}']
    assert seats.open_to(STEPS, 0, ESCALATION, 1) == ['{"role":"lawyers"}'], "nobody is named twice"
    keys = seats.open_to(STEPS, 1, ESCALATION, 2)
    assert keys == ['{"pool":"b"}', '{"role":"lawyers"}', '{"permission":"a.b"}']
    assert asked_in_words(STEPS, 1, keys) == "b or lawyers or a.b"


def fits(people: list[list[int]], needs: list[int]) -> bool:
    """By trying everything."""
    wanted = [number for number, need in enumerate(needs) for _ in range(need)]
    return any(len(set(chosen)) == len(chosen) for chosen in itertools.product(*(people[number] for number in wanted)))


@given(st.lists(st.tuples(st.lists(st.integers(0, 4), max_size=4, unique=True), st.integers(1, 2)), max_size=3))
def test_a_ladder_can_be_filled_exactly_where_trying_everything_says_so(ladder: list[tuple[list[int], int]]) -> None:
    people, needs = [one for one, _ in ladder], [need for _, need in ladder]
    short = seats.unfilled(people, needs)
    assert (short is None) == fits(people, needs)
    assert short is None or not fits(people[: short + 1], needs[: short + 1])


CANDIDATE = {"choice": "delete", "value": {"files": ["a", "b", "c"], "why": "old"}, "digest": "sha256:0", "revision": 2}


def test_a_part_is_a_candidate_of_its_own() -> None:
    part = narrowed(CANDIDATE, "files", [2, 0])
    assert part["value"] == {"files": ["a", "c"], "why": "old"}
    assert (part["choice"], part["revision"]) == ("delete", 3)
    assert part["digest"] == canonical.digest({"choice": "delete", "value": part["value"]})
    assert CANDIDATE["value"]["files"] == ["a", "b", "c"]  # type: ignore[index]


@pytest.mark.parametrize("keep", [[], [0, 1, 2], [0, 0], [3], [-1], [True], ["0"], None, "0", [0.0]])
def test_what_is_no_part_is_refused_in_words(keep: Any) -> None:
    with pytest.raises(BadPart, match="keep= takes some of the numbers 0 to 2"):
        narrowed(CANDIDATE, "files", keep)


@pytest.mark.parametrize("value", [None, [], {"files": "abc"}, {"files": []}, {}])
def test_a_candidate_without_such_a_list_has_no_parts(value: Any) -> None:
    with pytest.raises(BadPart, match="no list 'files'"):
        narrowed({**CANDIDATE, "value": value}, "files", [0])
