"""`make chaos`, small: the cloud's own ledger shows each effect once, whoever was killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEED = 5


@pytest.mark.req("B5", "B6", "K1", "T1")
def test_deployments_survive_chaos() -> None:
    unwanted = {"DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, "-m", "project.dev.chaos"],
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if name not in unwanted},
            "N": "30",
            "DURATION": "120",
            "SEED": str(SEED),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    wrong = ("duplicated", "lost", "live_commitments", "unfinished", "verify")
    assert {name: found[name] for name in ("runs", "seed", *wrong)} == {"runs": 30, "seed": SEED, **dict.fromkeys(wrong, 0)}
    assert found["kills"] > 0
    assert sum(found["outcomes"].values()) == 30
