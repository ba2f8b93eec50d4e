"""Git through its own command line: every call bounded, none dependent on the configuration of the user that runs it.

A `Workspace` is a clone that only lends its object store: trees and commits are made with an index of their own, so two
attempts at the same time, or one that was killed half-way, leave nothing that the next one could trip over.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flows.errors import AmbiguousOutcome, InvalidCandidate, Transient
from project.agents.coding.processes import own_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAIN = "refs/heads/main"
AUTHOR = ("Outlast coding agent", "coding-agent@example.invalid")
SECONDS = 90.0


class GitFailed(Transient):
    """A git command ended badly or took too long; the same operation may be tried again."""


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The process's own, without what a hook inherits from git and without anybody's configuration."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    fixed = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    return {**inherited, **fixed, **(more or {})}


def git(*arguments: str, cwd: Path, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """What the command prints.

    Raises:
        GitFailed: it ended with another code than 0, or not in time (then its process group is gone).
    """
    pipe = subprocess.PIPE
    given = subprocess.DEVNULL if stdin is None else pipe
    command = ["git", *arguments]
    with own_group(command, cwd=cwd, env=environment(env), stdin=given, stdout=pipe, stderr=pipe) as process:
        try:
            output, errors = process.communicate(None if stdin is None else stdin.encode(), timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise GitFailed(f"git {arguments[0]} took more than {SECONDS:.0f} s", command=arguments[0]) from None
    if process.returncode:
        text = errors.decode(errors="replace").strip()[-2000:]
        raise GitFailed(f"git {arguments[0]}: {text}", command=arguments[0], code=process.returncode)
    return output.decode(errors="replace")


def head_of(remote: str, ref: str = MAIN) -> str | None:
    """The commit that a ref of the remote stands at; None when there is no such ref."""
    line = git("ls-remote", "--", remote, ref, cwd=Path.cwd())
    return line.split()[0] if line.strip() else None


def clone(remote: str, folder: Path) -> Workspace:
    """The clone at `folder`, made if it is not there: complete or absent, never half."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        for left in folder.parent.glob(f"{folder.name}.part-*"):
            shutil.rmtree(left, ignore_errors=True)
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
        options = ["--quiet", "--no-checkout", "--no-tags", "--config", "gc.auto=0"]
        git("clone", *options, "--", remote, str(part), cwd=folder.parent)
        try:
            part.rename(folder)
        except OSError:  # another attempt was faster; its clone is as good
            shutil.rmtree(part, ignore_errors=True)
    return Workspace(folder, remote)


@dataclass(frozen=True)
class Workspace:
    folder: Path
    remote: str

    @property
    def scratch(self) -> Path:
        """Where temporary files of this workspace go: beside it, so that what a killed attempt left behind is easy to find."""
        path = self.folder.with_name(f"{self.folder.name}.scratch")
        path.mkdir(exist_ok=True)
        return path

    def git(self, *arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        return git(*arguments, cwd=self.folder, stdin=stdin, env=env).strip("\n")

    def fetch(self, ref: str = MAIN) -> str | None:
        """The remote's commit at `ref`, with its history in the object store; moves no ref, takes no lock."""
        for _ in range(3):  # it may be moved between the look and the fetch
            head = head_of(self.remote, ref)
            if head is None:
                return None
            options = ["--quiet", "--no-write-fetch-head", "--no-tags", "--refmap="]
            self.git("fetch", *options, "--", self.remote, f"{ref}:")
            if self.has(head):
                return head
        raise GitFailed(f"{ref} of the remote keeps moving", command="fetch")

    def has(self, commit: str) -> bool:
        return self._holds("cat-file", "-e", f"{commit}^{{commit}}")

    def contains(self, head: str, commit: str) -> bool:
        """Whether `commit` is part of the history of `head`."""
        return self.has(commit) and self._holds("merge-base", "--is-ancestor", commit, head)

    def files(self, commit: str) -> list[str]:
        return self.git("ls-tree", "-r", "-z", "--name-only", commit).split("\0")[:-1]

    def read(self, commit: str, path: str) -> str:
        return git("cat-file", "blob", f"{commit}:{path}", cwd=self.folder)

    def tree_with_edits(self, base: str, edits: Mapping[str, str]) -> str:
        """The tree of `base` with whole files replaced or added."""
        with self._index(base) as index:
            for path, text in sorted(edits.items()):
                blob = self.git("hash-object", "-w", "--stdin", stdin=text)
                self.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", env=index)
            return self.git("write-tree", env=index)

    def tree_with_patch(self, base: str, patch: str) -> str:
        """The tree of `base` with exactly this patch applied.

        Raises:
            InvalidCandidate: the patch does not apply to `base`.
        """
        with self._index(base) as index:
            try:
                self.git("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch, env=index)
            except GitFailed as error:
                raise InvalidCandidate(f"the patch does not apply to {base[:12]}: {error}") from None
            return self.git("write-tree", env=index)

    def diff(self, base: str, tree: str) -> str:
        return git("diff-tree", "-r", "-p", "--no-renames", "--full-index", base, tree, cwd=self.folder)

    def changed(self, base: str, tree: str) -> list[str]:
        return self.git("diff-tree", "-r", "-z", "--no-renames", "--name-only", base, tree).split("\0")[:-1]

    def commit(self, tree: str, parents: list[str], message: str, at: int) -> str:
        """A commit that is the same, to its name, however often and wherever it is made."""
        arguments = [word for parent in parents for word in ("-p", parent)]
        name, mail = AUTHOR
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", name), ("EMAIL", mail), ("DATE", f"{at} +0000"))
        }
        return self.git("commit-tree", tree, *arguments, stdin=message, env=who)

    def trailers(self, span: str, key: str) -> dict[str, str]:
        """Commit → value of the trailer `key`, for the commits of `span` that carry it."""
        lines = self.git("log", f"--format=%H %(trailers:key={key},valueonly,separator=%x2C)", span).splitlines()
        pairs = (line.partition(" ")[::2] for line in lines)
        return {commit: value for commit, value in pairs if value}

    def export(self, tree: str, folder: Path) -> None:
        """A fresh checkout of the tree, without a repository around it."""
        with self._index(tree) as index:
            self.git("checkout-index", "--all", "--quiet", f"--prefix={folder}/", env=index)

    def swap(self, ref: str, old: str | None, new: str) -> bool:
        """Compare and swap on the remote: `ref` goes from `old` to `new`, or False because somebody moved it meanwhile.

        A push whose answer was lost is settled by looking at the ref.

        Raises:
            GitFailed: it was not moved. AmbiguousOutcome: nobody can say whether it was.
        """
        return self._push(ref, old, new)

    def delete(self, ref: str, old: str) -> bool:
        """Compare and delete on the remote: False because it stands elsewhere, or is gone already. Errors as for `swap`."""
        return head_of(self.remote, ref) == old and self._push(ref, old, None)

    def _push(self, ref: str, old: str | None, new: str | None) -> bool:
        lease = f"--force-with-lease={ref}:{old or ''}"
        try:
            self.git("push", "--quiet", "--no-verify", lease, "--", self.remote, f"{new or ''}:{ref}")
        except GitFailed as failed:
            try:
                there = head_of(self.remote, ref)
            except GitFailed:
                raise AmbiguousOutcome(f"the push of {ref} failed, and the remote does not answer") from failed
            if there == old:
                raise
            return there == new
        return True

    @contextlib.contextmanager
    def _index(self, base: str) -> Iterator[dict[str, str]]:
        with tempfile.TemporaryDirectory(prefix="index-", dir=self.scratch) as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self.git("read-tree", base, env=index)
            yield index

    def _holds(self, *arguments: str) -> bool:
        try:
            self.git(*arguments)
        except GitFailed as error:
            if error.details.get("code") in {1, 128}:
                return False
            raise
        return True
