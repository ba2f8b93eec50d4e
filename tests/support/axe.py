"""axe-core, which looks at a page as an accessibility audit does. It is not part of this repository: a pinned wheel with it is fetched once.

OUTLAST_AXE=required    where it cannot be had the tests fail (`.ci/run` says so); without this they are left out
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Page

PINNED = Path(__file__).with_name("axe.txt")
KEPT = Path(__file__).resolve().parents[2] / ".outlast" / "axe"
INSIDE = "axe_playwright_python/axe.min.js"
#: What fails a test. Rules of good practice count as the standard's own do.
GRAVE = ("serious", "critical")

#: What Django's own templates draw, outside ours: (rule, element). Nothing that a template of ours draws belongs here.
DJANGOS = (
    ("link-in-text-block", ".breadcrumbs"),  # told from the text by colour alone
    ("link-in-text-block", "#changelist-search .small, #changelist-filter-extra-actions"),  # "Show all", on a narrow screen
    ("aria-prohibited-attr", ".selector .help-tooltip"),  # the help of its two lists for choosing several
    ("label-title-only", "#searchbar"),  # its label is a picture; a screen reader hears the picture's text
)

#: The rules whose answer depends on colours. All others say the same in every theme.
COLOURS = ("color-contrast", "link-in-text-block")

RUN = """(async (place, options, grave, known) => {
  const found = await axe.run(place, {resultTypes: ['violations'], preload: false, ...options});
  const djangos = (rule, target) => known.some(([name, where]) => name === rule && document.querySelector(target).closest(where));
  return JSON.stringify(found.violations.filter(one => grave.includes(one.impact)).map(one => ({
    rule: one.id, impact: one.impact, help: one.help,
    nodes: one.nodes.filter(node => !djangos(one.id, node.target[0])).map(
      node => ({target: node.target.join(' '), why: node.failureSummary})),
  })).filter(one => one.nodes.length));
})(%s)"""


@cache
def source() -> str:
    """The program, for the page. Left out, or failed, where it cannot be fetched."""
    path = KEPT / f"axe-{PINNED.read_text().split('==')[1].split()[0]}.js"
    if not path.exists():
        _fetch(path)
    return path.read_text()


def violations(page: Page, only: tuple[str, ...] = (), within: str = "html", but: str = "") -> list[dict[str, Any]]:
    """The grave ones of the page as it is now, each with `rule`, `impact`, `help`, and the `nodes` with why.

    With `only`, of these rules; with `within`, in these parts of the page, and not in those of `but`.
    """
    if page.do("typeof axe") == "undefined":
        page.do(source() + "; 0")
    place = {"include": [within], "exclude": [but] if but else []}
    given = (place, {"runOnly": list(only)} if only else {}, GRAVE, DJANGOS)
    return list(json.loads(page.do(RUN % ", ".join(map(json.dumps, given)), waits=True)))


def _fetch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(PINNED)]
        done = subprocess.run(
            [*pip, "-q", "--no-input", "--disable-pip-version-check", "-d", folder], capture_output=True, text=True, check=False
        )
        wheel = next(Path(folder).glob("*.whl"), None)
        if done.returncode or wheel is None:
            said = f"axe-core could not be fetched with pip ({PINNED.name}): {done.stderr.strip()[-400:]}"
            if os.environ.get("OUTLAST_AXE") == "required":
                pytest.fail(said)
            pytest.skip(said)
        with zipfile.ZipFile(wheel) as archive:
            script = archive.read(INSIDE)
    half = path.with_suffix(f".{os.getpid()}")
    half.write_bytes(script)
    half.replace(path)  # another test process may be doing the same
