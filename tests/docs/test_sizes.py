"""A file that no longer fits a reader's head is split.  The lists of exceptions may only shrink."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("flows", "approvals", "tasks", "project")
FILE_LINES, FUNCTION_LINES = 400, 60

LONG_FILES: frozenset[str] = frozenset()
LONG_FUNCTIONS: frozenset[str] = frozenset()


def product_files() -> list[Path]:
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts]
    assert found, "no product file was found: this test looks in the wrong place"
    return found


def functions_in(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in product_files()}
    assert {name for name, lines in lengths.items() if lines > FILE_LINES} == LONG_FILES


def test_no_function_is_longer_than_60_lines() -> None:
    lengths = dict(function for path in product_files() for function in functions_in(path))
    assert {name for name, lines in lengths.items() if lines > FUNCTION_LINES} == LONG_FUNCTIONS
