"""Runs the real tests of a tree, on a fresh checkout, as a process that ends in time and never outlives its worker.

The tests are code that others (or the model) wrote. Here they get a bare environment without the worker's secrets and a
folder of their own; on a real host, this is the place for a sandbox.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from flows.errors import Transient
from project.agents.coding.processes import own_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from project.agents.coding.git import Workspace

SECONDS = 240.0
COMMAND = ["-m", "unittest", "discover", "-s", "tests", "-t", "."]
RAN = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
FAILED = re.compile(r"^(?:FAIL|ERROR): (.+?)$(.*?)(?=^={70}$|^-{70}\nRan |\Z)", re.MULTILINE | re.DOTALL)
TAIL = 64 * 1024


@dataclass(frozen=True, slots=True)
class Report:
    """What the tests said, without times and paths: two runs of one tree give equal reports."""

    passed: bool
    tests: int
    failures: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """For a reader (a person or a model): each failing test with its last line."""
        return "\n".join(f"{name}: {message}" for name, message in self.failures)


def run_tests_of(
    space: Workspace, tree: str, *, seconds: float = SECONDS, beat: Callable[[], str] = lambda: "continue"
) -> Report:
    """The verdict of the repository's own tests on this tree.

    Tests that do not end in time are killed with all they started, and have failed.

    Raises:
        Transient: the work was called off meanwhile.
    """
    with tempfile.TemporaryDirectory(prefix="tests-", dir=space.scratch, ignore_cleanup_errors=True) as folder:
        checkout = Path(folder, "checkout")
        checkout.mkdir()
        space.export(tree, checkout)
        with tempfile.TemporaryFile() as output:
            code = _finish(checkout, output, seconds, beat)
            output.seek(max(0, output.seek(0, os.SEEK_END) - TAIL))
            text = output.read().decode(errors="replace")
    if code is None:
        return Report(passed=False, tests=0, failures=(("tests", f"did not end within {seconds:g} s"),))
    return report_of(code, text)


def report_of(code: int, text: str) -> Report:
    """The report for an exit code and the output of unittest."""
    count = RAN.search(text)
    tests = int(count.group(1)) if count else 0
    failures = [(name, _last_line(body)) for name, body in FAILED.findall(text)]
    if tests == 0:
        failures.append(("tests", "no test was run"))
    elif code and not failures:
        failures.append(("tests", f"ended with code {code}"))
    return Report(passed=code == 0 and tests > 0, tests=tests, failures=tuple(failures[:20]))


def _finish(checkout: Path, output: IO[bytes], seconds: float, beat: Callable[[], str]) -> int | None:
    """The exit code, or None when the time is over; looks once a second whether the work is still wanted."""
    deadline = time.monotonic() + seconds
    with _lifeline() as line:
        child = [sys.executable, "-P", "-s", str(Path(__file__).with_name("suite_child.py")), str(line), *COMMAND]
        options = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT, "pass_fds": [line]}
        with own_group(child, cwd=checkout, env=_environment(checkout), **options) as process:
            while (left := deadline - time.monotonic()) > 0:
                try:
                    return process.wait(min(1.0, left))
                except subprocess.TimeoutExpired:
                    if (answer := beat()) != "continue":
                        raise Transient(f"the tests were stopped: {answer}") from None
    return None


@contextmanager
def _lifeline() -> Iterator[int]:
    """A pipe whose other end closes with this process, however it ends: suite_child.py watches it."""
    watched, held = os.pipe()
    try:
        yield watched
    finally:
        os.close(watched)
        os.close(held)


def _environment(checkout: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(checkout.parent),
        "TMPDIR": str(checkout.parent),
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }


def _last_line(body: str) -> str:
    lines = [line for line in body.splitlines() if line and not line.startswith((" ", "-", "="))]
    return lines[-1][:300] if lines else ""
