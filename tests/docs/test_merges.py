"""No page or source keeps the marks of a merge that was left half done: Python's would not parse, but nothing reads those of a page."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "flows", "approvals", "tasks", "project", "tests", "benchmarks")
KINDS = {".md", ".py", ".html", ".sql", ".css", ".js", ".txt", ".toml", ".yml", ".json"}
MARK = re.compile(r"^(<{7}|>{7}|\|{7}) ", re.MULTILINE)


def test_no_mark_of_a_merge_is_left() -> None:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS and path.is_file()]
    paths += [path for path in ROOT.iterdir() if path.suffix in KINDS]
    assert len(paths) > 500, "this test looks in the wrong place"
    assert [str(path.relative_to(ROOT)) for path in paths if MARK.search(path.read_text(errors="replace"))] == []
