"""Running a repository's tests: the verdict, the bounds, and nothing that is left behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from flows.errors import Transient
from project.agents.coding.git import Workspace, clone
from project.agents.coding.suite import Report, report_of, run_tests_of

HANG = """
    import os, subprocess, sys, unittest

    class Hang(unittest.TestCase):
        def test_hangs(self):
            line = os.open({fifo!r}, os.O_WRONLY)  # closed when all who hold it are gone
            os.write(line, b"here")
            subprocess.run([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[line])
"""


def space_with(world: Any, test: str) -> tuple[Workspace, str]:
    space = clone(world.input["remote"], world.folder / "suite")
    return space, space.tree_with_edits(str(space.fetch()), {"tests/test_shop.py": dedent(test)})


@pytest.fixture
def fifo(tmp_path: Path) -> Any:
    """A pipe by name, which a process below the tests opens, writes to and holds."""
    path = tmp_path / "held"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    class Fifo:
        name = str(path)

        def read(self) -> bytes:
            """What was written; nothing when nobody holds the pipe any more."""
            ready, _, _ = select.select([reader], [], [], 20)
            assert ready, "for 20 s nobody has written, and somebody still holds the pipe"
            return os.read(reader, 4)

    yield Fifo()
    os.close(reader)


def test_a_good_tree_passes_and_a_bad_one_says_what_failed(world: Any) -> None:
    space, tree = space_with(
        world,
        """
        import unittest

        class Numbers(unittest.TestCase):
            def test_good(self):
                pass
            def test_wrong(self):
                self.assertEqual(1, 2)
            def test_broken(self):
                raise KeyError("x")
        """,
    )
    report = run_tests_of(space, tree)
    assert report.passed is False
    assert report.tests == 3
    assert report.failures == (
        ("test_broken (tests.test_shop.Numbers.test_broken)", "KeyError: 'x'"),
        ("test_wrong (tests.test_shop.Numbers.test_wrong)", "AssertionError: 1 != 2"),
    )
    assert run_tests_of(space, tree) == report
    assert run_tests_of(space, str(space.fetch())).passed is True


def test_a_tree_without_tests_has_not_passed(world: Any) -> None:
    space, tree = space_with(world, "")
    assert run_tests_of(space, tree).failures == (("tests", "no test was run"),)


def test_a_tree_that_cannot_be_imported_fails(world: Any) -> None:
    space, tree = space_with(world, "import nowhere_to_be_found")
    report = run_tests_of(space, tree)
    assert report.passed is False
    assert "nowhere_to_be_found" in report.text


def test_a_suite_that_dies_has_not_passed() -> None:
    assert report_of(-9, "Ran 3 tests in 0.1s\n") == Report(passed=False, tests=3, failures=(("tests", "ended with code -9"),))


def test_the_tests_see_nothing_of_the_workers_secrets(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    space, tree = space_with(
        world,
        """
        import os, sys, unittest

        class Clean(unittest.TestCase):
            def test_clean(self):
                self.assertNotIn("DATABASE_URL", os.environ)
                self.assertNotIn("DJANGO_SETTINGS_MODULE", os.environ)
                self.assertFalse([path for path in sys.path if path.endswith("coding")])
        """,
    )
    assert run_tests_of(space, tree).text == ""


def test_tests_that_hang_are_ended_with_all_they_started(world: Any, fifo: Any) -> None:
    space, tree = space_with(world, HANG.format(fifo=fifo.name))
    report = run_tests_of(space, tree, seconds=5)
    assert report.failures == (("tests", "did not end within 5 s"),)
    assert fifo.read() == b"here"
    assert fifo.read() == b""


@pytest.mark.parametrize("answer", ["cancel", "lost"])
def test_tests_stop_when_the_work_is_called_off(world: Any, fifo: Any, answer: str) -> None:
    space, tree = space_with(world, HANG.format(fifo=fifo.name))
    with pytest.raises(Transient, match=answer):
        run_tests_of(space, tree, beat=lambda: answer if fifo.read() == b"here" else "continue")
    assert fifo.read() == b""


def test_a_killed_worker_takes_its_tests_with_it(world: Any, fifo: Any) -> None:
    space, tree = space_with(world, HANG.format(fifo=fifo.name))
    program = (
        "import sys, pathlib\n"
        "from project.agents.coding.suite import run_tests_of\n"
        "from project.agents.coding.git import Workspace\n"
        "run_tests_of(Workspace(pathlib.Path(sys.argv[1]), sys.argv[2]), sys.argv[3])\n"
    )
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join([*os.environ.get("PYTHONPATH", "").split(os.pathsep), root])
    worker = subprocess.Popen(
        [sys.executable, "-c", program, str(space.folder), space.remote, tree], env={**os.environ, "PYTHONPATH": path}
    )
    assert fifo.read() == b"here"
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert fifo.read() == b""
