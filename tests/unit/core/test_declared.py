"""What stands beside the flows is found by its kind and name, and each is there once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from flows import checks, registry
from flows.core import declared
from flows.core.declared import Declared
from flows.core.errors import DefinitionError

pytestmark = pytest.mark.req("G5")


@dataclass(frozen=True)
class Lamp(Declared):
    kind: ClassVar[str] = "lamp"

    watts: int = 40


@dataclass(frozen=True)
class Door(Declared):
    kind: ClassVar[str] = "door"


@pytest.fixture(autouse=True)
def things_of_this_test() -> Iterator[None]:
    before = list(declared.DECLARED)
    declared.DECLARED.clear()
    yield
    declared.DECLARED[:] = before


def ids() -> list[str]:
    return [str(one.id) for one in checks.check_flows(None) if str(one.id).endswith("E040")]


def test_each_kind_has_names_of_its_own() -> None:
    hall, door = Lamp("hall", watts=60), Door("hall")
    assert registry.declared(Lamp) == {"hall": hall}
    assert registry.declared(Door) == {"hall": door}
    assert ids() == []


def test_the_same_thing_twice_is_one_thing() -> None:
    Lamp("hall")
    assert list(registry.declared(Lamp).values()) == [Lamp("hall")]
    assert ids() == []


def test_two_that_differ_are_a_mistake_that_names_them() -> None:
    Lamp("hall"), Lamp("hall", watts=60)
    (found,) = [one for one in checks.check_flows(None) if str(one.id).endswith("E040")]
    assert found.msg == "There are two of the kind lamp with the name 'hall', and they differ."
    assert registry.declared(Lamp)["hall"].watts == 60, "the one that was made last counts"


@pytest.mark.parametrize("name", ["", "  ", 7, None, "x" * 501])
def test_a_name_that_nothing_can_be_looked_up_by_is_refused(name: object) -> None:
    with pytest.raises(DefinitionError, match="The name of lamp"):
        Lamp(name)  # type: ignore[arg-type]
    assert declared.DECLARED == []
