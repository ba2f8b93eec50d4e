"""The pages about agent libraries: their flows pass the checks, and their tests run as they are printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flows import checks, registry
from flows.core import definition as declared
from flows.models import JournalEntry

DOCS = Path(__file__).parents[3] / "docs" / "how-to"
BLOCK = re.compile(r"^```python\n# (\S+?)(?:, continued)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def written() -> Iterator[Any]:
    """Make modules of a page's blocks, each named in its first line; they and what they declare are gone afterwards."""
    before, modules = list(declared.DECLARED), dict(sys.modules)
    declared.DECLARED.clear()

    def write(page: str) -> dict[str, ModuleType]:
        made: dict[str, ModuleType] = {}
        for path, block in BLOCK.findall((DOCS / page).read_text()):
            name = path.removesuffix(".py").replace("/", ".")
            module = made.setdefault(name, ModuleType(name))
            sys.modules.setdefault(name.partition(".")[0], ModuleType(name.partition(".")[0]))
            sys.modules[name] = module
            exec(compile(block, f"{page}, {path}", "exec"), vars(module))  # our own documentation
        registry._lookup.cache_clear()
        return made

    yield write
    for name in set(sys.modules) - set(modules):
        if name.partition(".")[0] in ("yourapp", "tests") and not hasattr(sys.modules[name], "__file__"):
            del sys.modules[name]
    declared.DECLARED[:] = before
    registry._lookup.cache_clear()


@pytest.mark.req("O1")
def test_the_page_about_pydantic_ai_runs(written: Any, transactional_db: None) -> None:
    pytest.importorskip("pydantic_ai", reason="pip install 'outlast[pydantic-ai]'")
    modules = written("pydantic-ai.md")
    assert checks.check_flows(None) == []
    assert {"Complaint", "Film"} <= set(vars(modules["yourapp.flows"])), "where flows are found"
    modules["tests.test_complaint"].test_the_customer_gets_an_answer(None)
    assert list(JournalEntry.objects.order_by("number").values_list("kind", "name")) == [
        ("model", "cashier__model.request.test:test"),
        ("tool", "cashier__function_toolset__<agent>.call_tool:order"),
        ("model", "cashier__model.request.test:test"),
    ]


@pytest.mark.req("O1")
def test_the_page_about_the_openai_agents_sdk_runs(written: Any, transactional_db: None) -> None:
    pytest.importorskip("agents", reason="pip install 'outlast[openai-agents]'")
    modules = written("openai-agents.md")
    assert checks.check_flows(None) == []
    modules["tests.test_return"].test_the_customer_gets_an_answer(None)
    assert list(JournalEntry.objects.order_by("number").values_list("kind", "name")) == [
        ("model", "clerk__model.request"),
        ("tool", "clerk__tool:find_order"),
        ("model", "clerk__model.request"),
    ]
