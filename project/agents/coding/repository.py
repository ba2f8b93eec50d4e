"""Makes the demonstration's repository: a bare remote, the same to the last commit id wherever it is made."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from project.agents.coding.git import MAIN, git, head_of
from project.agents.coding.sample import HISTORY

if TYPE_CHECKING:
    from collections.abc import Mapping

BEGAN = 1_767_225_600  # 2026-01-01
SOMEBODY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Shop team"), ("EMAIL", "shop@example.invalid"))
}


def make_remote(folder: Path) -> Path:
    """The bare repository at `folder`, made if it is not there. It logs every move of a ref: effects can be counted."""
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
    git("init", "--quiet", "--bare", "--initial-branch=main", str(part), cwd=folder.parent)
    git("config", "core.logAllRefUpdates", "always", cwd=part)
    for message, files in HISTORY:
        commit_to_main(part, files, message)
    try:
        part.rename(folder)
    except OSError:
        shutil.rmtree(part)
    return folder


def commit_to_main(remote: Path, files: Mapping[str, str], message: str) -> str:
    """A commit on main by somebody who is not the agent."""
    base = head_of(str(remote))
    count = int(git("rev-list", "--count", MAIN, cwd=remote)) if base else 0
    date = f"{BEGAN + 86_400 * count} +0000"
    who = {**SOMEBODY, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        if base:
            git("read-tree", base, cwd=remote, env=index)
        for path, text in files.items():
            blob = git("hash-object", "-w", "--stdin", cwd=remote, stdin=text).strip()
            git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", cwd=remote, env=index)
        tree = git("write-tree", cwd=remote, env=index).strip()
    parents = ["-p", base] if base else []
    commit = git("commit-tree", tree, *parents, cwd=remote, stdin=f"{message}\n", env=who).strip()
    git("update-ref", "--create-reflog", MAIN, commit, base or "", cwd=remote, env=who)
    return commit


def install_hook(remote: Path, command: list[str], folder: Path) -> None:
    """A post-receive hook that runs `command` in `folder`, with the list of pushed refs as its input."""
    hook = remote / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    leave = "unset $(git rev-parse --local-env-vars)"  # or every git command below would work on this repository
    hook.write_text(f"#!/bin/sh\n{leave}\ncd {shlex.quote(str(folder))} && exec {shlex.join(command)}\n")
    hook.chmod(0o755)


def moves(remote: Path, ref: str) -> list[tuple[str, str]]:
    """Every move that the ref has made, oldest first, as (old, new), from the remote's own log."""
    with contextlib.suppress(FileNotFoundError):
        lines = (remote / "logs" / ref).read_text().splitlines()
        return [(old, new) for old, new, *_ in (line.split(" ", 2) for line in lines)]
    return []
