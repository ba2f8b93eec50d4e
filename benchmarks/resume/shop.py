"""The project that is built: a folder with modules of Python, and the four tools of the agent. What it says of itself is made by code.

    list_project ──► paths    read_file ──► the whole text    edit_file ──► a new revision    verify ──► the project's own tests, run
A revision is a line of `.revisions`: number, path, and what was changed; `outlines` and `revisions` are read from the folder each time.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

#: The folder that the tools work on.
place = [Path()]

NOUNS = (
    *(
        "account",
        "address",
        "basket",
        "carrier",
        "catalogue",
        "coupon",
        "customer",
        "delivery",
        "discount",
        "export",
        "gift",
        "invoice",
    ),
    *("ledger", "locale", "offer", "order", "parcel", "payment", "price", "receipt", "refund", "return_", "search", "stock"),
    *("store", "tax", "ticket", "transfer", "unit", "user", "voucher", "warehouse", "weight", "wishlist", "zone", "archive"),
)
DEFINES = "price"
CALLS = ("delivery", "invoice", "order")
OLD_DEFINITION = "def round_price(amount):\n    return round(amount, 2)\n"
NEW_DEFINITION = 'def round_price(amount, currency):\n    return round(amount, 0 if currency == "JPY" else 2)\n'
OLD_CALL = 'round_price(bill["amount"])'
NEW_CALL = 'round_price(bill["amount"], bill["currency"])'

TESTS = """import unittest

from shop import delivery, invoice, order


class Rounding(unittest.TestCase):
    def test_yen_have_no_cents(self):
        for module in (delivery, invoice, order):
            self.assertEqual(module.billed({"amount": 10.456, "currency": "JPY"}), 10)
            self.assertEqual(module.billed({"amount": 10.456, "currency": "EUR"}), 10.46)
"""


def write(folder: Path, files: int) -> None:
    """A project with so many modules of about 8 KB, whose tests fail until four of them are changed."""
    others = [noun for noun in NOUNS if noun not in (DEFINES, *CALLS)]
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "test_shop.py").write_text(TESTS)
    for noun in (DEFINES, *CALLS, *others[: files - 4]):
        (folder / "shop" / f"{noun}.py").write_text(_module(noun))


def _module(noun: str) -> str:
    parts = [f'"""What the shop knows of its {noun}s."""\n']
    if noun in CALLS:
        parts.append(f"from shop.{DEFINES} import round_price\n\n\ndef billed(bill):\n    return {OLD_CALL}\n")
    if noun == DEFINES:
        parts.append(OLD_DEFINITION)
    for what in ("find", "check", "sort", "count", "merge", "split", "label", "show", "store_of", "rank"):
        lines = "\n".join(
            f'    if values.get("{noun}_{step}") is None:\n        values["{noun}_{step}"] = limit * {step} + len(values)'
            for step in range(7)
        )
        parts.append(
            f'def {what}_{noun}(values, limit):\n    """To {what} one {noun}, within its limit."""\n{lines}\n    return values\n'
        )
    return "\n\n".join(parts)


# ------------------------------------------------------------ the tools


def list_project() -> dict[str, Any]:
    """The paths of all files of the project."""
    return {"files": paths()}


def read_file(path: str) -> dict[str, Any]:
    """The whole text of one file."""
    return {"path": path, "text": _inside(path).read_text(), "revision": len(revisions())}


def edit_file(path: str, old: str, new: str) -> dict[str, Any]:
    """Replace a piece of a file by another one."""
    file, known = _inside(path), revisions()
    text = file.read_text()
    if old in text:
        file.write_text(text.replace(old, new))
        known.append({"revision": len(known) + 1, "path": path, "replaced": old.splitlines()[0], "by": new.splitlines()[0]})
        (place[0] / ".revisions").write_text("".join(json.dumps(one) + "\n" for one in known))
    elif new not in text:
        raise ValueError(f"{path} has no such piece")
    return {"edited": path, "revision": len(known)}


def verify() -> dict[str, Any]:
    """Run the tests of the project."""
    ran = subprocess.run(
        [sys.executable, "-B", "-m", "unittest", "-q"], cwd=place[0], capture_output=True, text=True, timeout=60, check=False
    )
    said = ran.stderr.strip().splitlines()
    return {"verified": ran.returncode == 0, "said": said[-1] if said else "", "revision": len(revisions())}


TOOLS = (list_project, read_file, edit_file, verify)


# ------------------------------------------------------------ what code knows of the project


def paths() -> list[str]:
    """All files, in order."""
    return sorted(file.relative_to(place[0]).as_posix() for file in place[0].rglob("*.py") if file.stat().st_size)


def outlines() -> dict[str, str]:
    """Path → the functions and classes in it, with their lines."""
    return {path: _outline(_inside(path).read_text()) for path in paths()}


def revisions() -> list[dict[str, Any]]:
    """What was changed so far, in order."""
    file = place[0] / ".revisions"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _outline(text: str) -> str:
    found = [one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    return ", ".join(f"{one.name}:{one.lineno}" for one in found)


def _inside(path: str) -> Path:
    file = (place[0] / path).resolve()
    if not file.is_relative_to(place[0].resolve()) or not file.is_file():
        raise ValueError(f"there is no file {path}")
    return file
