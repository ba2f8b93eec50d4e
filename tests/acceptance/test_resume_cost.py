"""`make resume`, with a smaller project: after a raise the turn verifies at once; a conversation that begins again does all of it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.resume import shop
from benchmarks.resume.model import Model

ROOT = Path(__file__).parents[2]


def names(text: str) -> list[str]:
    return [call.name for call in Model().decide(text).calls]


def test_the_model_decides_from_its_prompt_alone() -> None:
    files = '{"files": ["a.py", "b.py"]}'
    assert names("the task") == ["list_project"]
    assert names(files) == ["read_file"], "it has seen none of them"
    seen = '1 read_file {"path": "a.py"} → 8,000 bytes, sha256:1\n2 read_file {"path": "b.py"} → 8,000 bytes, sha256:2'
    assert names(f"{files}\n{seen}") == ["verify"]
    assert names(f"{files}\n1 read_file {{}} → error TOOL_ARGUMENTS\n{seen.splitlines()[1]}") == ["read_file"]
    found = json.dumps({"path": "a.py", "text": f"x = {shop.OLD_CALL}", "revision": 0})
    assert names(f"{files}\n{seen}\n{found}") == ["edit_file"]
    assert names(f'{files}\n{seen}\n{found}\n{{"edited": "a.py", "revision": 1}}') == ["verify"], (
        "what it sees is older than the edit"
    )
    assert names(seen) == ["list_project"]


def test_the_project_is_verified_by_its_own_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.write(tmp_path / "p", 8)
    monkeypatch.setattr(shop, "place", [tmp_path / "p"])
    assert len(shop.list_project()["files"]) == 9
    assert not shop.verify()["verified"]
    for noun in shop.CALLS:
        shop.edit_file(f"shop/{noun}.py", shop.OLD_CALL, shop.NEW_CALL)
    assert not shop.verify()["verified"]
    for _ in range(2):
        assert shop.edit_file(f"shop/{shop.DEFINES}.py", shop.OLD_DEFINITION, shop.NEW_DEFINITION)["revision"] == 4
    assert shop.verify()["verified"]
    with pytest.raises(ValueError, match="no file"):
        shop.read_file("../outside.py")


@pytest.mark.req("B3", "O1")
def test_going_on_costs_a_tenth_and_beginning_again_nearly_all() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.resume.run", "--n", "12"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    line = json.loads(done.stdout.splitlines()[-1])
    assert line["ok"]
    assert line["ours"]["after"]["called"] == ["verify"]
    assert line["ours"]["ratio"]["tokens"] <= 0.10 >= line["ours"]["ratio"]["tools"]
    assert line["restart"]["ratio"]["tokens"] >= 0.80 <= line["restart"]["ratio"]["tools"]
    assert (line["read_again"], line["ours"]["before"]["tools"], line["restart"]["before"]["tools"]) == (0, 17, 18)
