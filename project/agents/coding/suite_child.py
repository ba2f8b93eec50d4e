"""python -P suite_child.py FD -m MODULE ARGUMENT…: runs the module, and ends with its group when the pipe at FD closes.

The other end of the pipe is held by the worker alone, so a killed worker takes its tests with it.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from pathlib import Path


def watch(descriptor: int) -> None:
    os.read(descriptor, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    descriptor, module = int(sys.argv[1]), sys.argv[3]
    sys.argv = sys.argv[3:]
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` has it
    threading.Thread(target=watch, args=[descriptor], daemon=True).start()
    runpy.run_module(module, run_name="__main__", alter_sys=True)
