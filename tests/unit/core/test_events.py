"""What is known of events beside their content."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from flows import About
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
