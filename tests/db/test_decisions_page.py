"""The example of docs/how-to/decisions.md is sound and runs as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flows import registry
from flows.core import definition as declared
from flows.core import lint
from flows.core.context import ORDER
from flows.models import Candidate
from flows.testing import LocalWorker
from tests import factories
from tests.factories import status

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "decisions.md"


@pytest.mark.req("O1", "O2")
def test_the_example_of_the_page_runs(worker: LocalWorker) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    before = list(declared.DECLARED)
    names = {"__name__": "yourapp.flows"}
    try:
        exec(compile(block, PAGE.name, "exec"), names)  # our own documentation
        registry._lookup.cache_clear()
        factories.offer(worker)
        mend = names["Mend"]
        assert lint.problems(mend.definition) == []  # type: ignore[attr-defined]
        run = mend.start({})  # type: ignore[attr-defined]
        worker.run()
        assert status(run) == ("failed", "FAILED", "gave_up")
        artifact = Candidate.objects.get()
        assert (artifact.choice, artifact.model, artifact.usage["cost"]) == ("give_up", "provider/model-1", "0.0125")
    finally:
        declared.DECLARED[:] = before
        registry._lookup.cache_clear()


def test_the_page_names_the_sections_in_their_order() -> None:
    table = PAGE.read_text().partition("| section | what is in it |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == ORDER
