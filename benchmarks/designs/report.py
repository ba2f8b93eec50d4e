"""A table for people and one JSON line per design for programs."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable
from typing import Any

from benchmarks.designs.sides import ROOT, SIDES

Record = dict[str, Any]
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}


HEAD = (
    "design",
    "right",
    "done twice",
    "orphans /100",
    "by hand",
    "by hand /1,000 faults",
    "s, nothing befell: p50 / p95",
    "s, befallen: p50 / p95",
    "CPU s/run",
    "messages/run",
    "statements/run",
    "code lines",
)


def lines_of(files: Iterable[str]) -> int:
    """Lines with code: neither blank, nor comment, nor docstring."""
    return sum(_code_lines((ROOT / f"{name}.py").read_text()) for name in files)


def _code_lines(text: str) -> int:
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BLANK:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            found.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(found)


def line(name: str, record: Record, plan: Record) -> Record:
    """The JSON line of one design."""
    side = SIDES[name]
    return {"design": name, "title": side.title, **plan, "keys": side.keys, "code_lines": lines_of(side.written), **record}


def table(lines: list[Record]) -> str:
    """Markdown."""
    head = list(HEAD)
    rows = [head, ["---"] * len(head)]
    for found in lines:
        if found.get("error"):
            rows.append([found["title"], f"failed: {found['error']}", *[""] * (len(head) - 2)])
            continue
        rows.append([found["title"], *_cells(found)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cells(found: Record) -> list[str]:
    return [
        f"{100 * found['correct']:.0f} %",
        str(found["duplicated"]),
        _shown(found["orphans_per_100"]),
        f"{found['manual_actions']} ({found['asks_a_person']} asked)",
        _shown(found["burden_per_1000"]),
        _latency(found["latency_quiet"]),
        _latency(found["latency_hit"]),
        _shown(found["cpu_per_run"]),
        _shown(found["messages_per_run"]),
        _shown(found["statements_per_run"]),
        str(found["code_lines"]),
    ]


def _latency(spread: Record) -> str:
    return f"{spread['p50']:.1f} / {spread['p95']:.1f} (n={spread['n']})" if spread["n"] else "none"


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
