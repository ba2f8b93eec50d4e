"""One process that works through a list of runs. It keeps nothing: a supervisor starts it again, and it begins at the top.

Cancel: the run is struck off the list, which counts if it has not begun. What failed five times is noted for a person.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.designs import task
from benchmarks.designs.steps import deploy
from flows.errors import ActivityError


def main() -> None:
    folder, cloud, ended = Path(os.environ[task.FOLDER]), task.cloud(), set()
    while True:
        for run in task.read_lines(folder / "runs.jsonl"):
            if run in ended or run in task.read_lines(folder / "struck.jsonl"):
                continue
            for left in reversed(range(5)):
                try:
                    deploy(cloud, run)
                    break
                except ActivityError:
                    if not left:
                        with (folder / "failed.jsonl").open("a") as file:
                            file.write(f'"{run}"\n')
            ended.add(run)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
