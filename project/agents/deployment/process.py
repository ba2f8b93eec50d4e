"""The cloud as a child process: for tests, and for demonstrations that kill it."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from project.agents.deployment.client import Cloud

PATIENCE = 30.0


class CloudProcess:
    """Runs inside the `with` block. After `kill` or `stop`, `start` brings it back at the same address with the same data.

    `wrapper` is put before the command: a program that becomes it, such as one that ties it to the life of this process.
    """

    def __init__(self, data: Path, *, seed: int = 0, wrapper: Sequence[str] = ()) -> None:
        self.data, self.seed, self.wrapper = data, seed, wrapper
        self.address = "http://127.0.0.1:0"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        """Returns when connections are accepted."""
        options = ["--port", self.address.rpartition(":")[2], "--data", str(self.data), "--seed", str(self.seed)]
        command = [*self.wrapper, sys.executable, "-m", f"{__package__}.cloud", *options]
        self._process = process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert process.stdout is not None
        try:
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            line = process.stdout.readline() if ready else b""
            if not line:
                raise RuntimeError("the cloud did not start")
            self.address = json.loads(line)["address"]
        except BaseException:
            self.kill()
            raise

    @property
    def running(self) -> bool:
        """Started, and not ended by us."""
        return self._process is not None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the cloud is not running"
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: it gets no chance to tidy up."""
        self._end(subprocess.Popen.kill)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(subprocess.Popen.terminate)

    def _end(self, how: Callable[[subprocess.Popen[bytes]], None]) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        with process:  # waits, and closes the pipe
            how(process)
        return process.returncode

    def client(self, timeout: float = 5.0) -> Cloud:
        return Cloud(self.address, timeout)
