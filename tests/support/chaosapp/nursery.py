"""A process with Django loaded that forks one child after another, so that a crash costs milliseconds.

python -m tests.support.chaosapp.nursery        requests on stdin and answers on stdout, one JSON object a line
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

SECONDS = 60


def serve() -> None:
    import django

    django.setup()
    from flows.testing.clock import MOVABLE_CLOCK
    from tests.support import record  # noqa: F401 - loaded once, for all children
    from tests.support.chaosapp import flows, stories  # noqa: F401

    run_in_child(lambda: prepare(MOVABLE_CLOCK))
    for line in sys.stdin:
        request = json.loads(line)
        code = run_in_child(lambda request=request: child(**request))
        sys.stdout.write(json.dumps({"code": code}) + "\n")
        sys.stdout.flush()


def prepare(clock: str) -> None:
    from django.db import connection

    from tests.support.chaosapp.stories import make_reviewer

    with connection.cursor() as cursor:
        for statement in clock.split(";"):
            cursor.execute(statement)
    make_reviewer()


def child(*, story: str, folder: str, key: str, crash: str) -> None:
    from tests.support import crash as seams
    from tests.support import record
    from tests.support.chaosapp.stories import tell

    record.let_be_measured()
    seams.install(crash)
    tell(story, folder, key)


def run_in_child(body: Any) -> int:
    """Its exit code; negative: the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            body()
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the test is told by the exit code and the log
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Nursery:
    """The test's side."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **environment},
                text=True,
            )

    def run(self, story: str, folder: Path, key: str, crash: str) -> int:
        """The exit code of the process that told the story; negative: the signal that ended it."""
        assert self.process.stdin and self.process.stdout
        request = {"story": story, "folder": str(folder), "key": key, "crash": crash}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the nursery has ended: {self.log.read_text()[-3000:]}"
        code: int = json.loads(answer)["code"]
        return code

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(SECONDS)
        self.process.stdout.close()


if __name__ == "__main__":
    serve()
