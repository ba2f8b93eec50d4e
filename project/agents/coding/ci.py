"""A small CI: builds every commit that is pushed below refs/heads/outlast/, and says so with an event.

    python -m project.agents.coding.ci --remote PATH [--every SECONDS] [--mischief]     until it is told to end
    python -m project.agents.coding.ci --remote PATH --hook [--mischief]                once, as a post-receive hook

As with any sender, an event may come twice, or before anybody waits for it. With `--mischief` it surely does: the hook
reports a new branch during the push itself, and what the watcher reports it reports twice. The id of an event is made
of the commit alone and a report holds no times, so whoever sends it, and however often, it is the same event.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from project.agents.coding.git import clone, git
from project.agents.coding.suite import run_tests_of

Send = Callable[..., Any]  # flows.signal

BRANCHES = "refs/heads/outlast/*"
EVENT = "ci.finished"
NOBODY = "0" * 40
log = logging.getLogger("coding_agent.ci")


def heads(remote: str) -> list[str]:
    """The commits that the agents' branches stand at."""
    return [line.split()[0] for line in git("ls-remote", "--", remote, BRANCHES, cwd=Path.cwd()).splitlines()]


def build(remote: str, sha: str) -> dict[str, Any]:
    """What is reported about a commit."""
    with tempfile.TemporaryDirectory(prefix="outlast-ci-") as folder:
        report = run_tests_of(clone(remote, Path(folder, "clone")), sha)
    conclusion = "success" if report.passed else "failure"
    return {"sha": sha, "conclusion": conclusion, "tests": report.tests, "text": report.text[:4000]}


def announce(payload: dict[str, Any], send: Send, *, times: int = 1) -> None:
    for _ in range(times):
        answer = send(f"ci-{payload['sha']}", EVENT, key=payload["sha"], payload=payload)
        log.info("%s %s: %s", payload["sha"][:12], payload["conclusion"], answer)


def on_push(remote: str, lines: Iterable[str], send: Send, *, mischief: bool) -> None:
    """The hook: with mischief, a branch that was just created is built and reported before the push returns."""
    for line in lines:
        old, new, ref = line.split()
        if mischief and old == NOBODY and ref.startswith(BRANCHES.removesuffix("*")):
            announce(build(remote, new), send)


class Watcher:
    """Looks at the remote again and again. It remembers what it has sent; after a restart it sends all of it again."""

    def __init__(self, remote: str, send: Send, *, mischief: bool) -> None:
        self.remote, self.send, self.mischief = remote, send, mischief
        self.sent: set[str] = set()

    def look(self) -> None:
        for sha in heads(self.remote):
            if sha not in self.sent:
                announce(build(self.remote, sha), self.send, times=2 if self.mischief else 1)
                self.sent.add(sha)

    def run(self, every: float, ending: threading.Event) -> None:
        while not ending.is_set():
            try:
                self.look()
            except Exception:
                log.exception("this round failed; the next one tries again")
            ending.wait(every)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="ci", description="A small CI for the coding agent's branches.")
    parser.add_argument("--remote", required=True)
    parser.add_argument("--hook", action="store_true")
    parser.add_argument("--mischief", action="store_true")
    parser.add_argument("--every", type=float, default=0.5)
    options = parser.parse_args(arguments)
    send = signal_flows()
    if options.hook:
        on_push(options.remote, sys.stdin, send, mischief=options.mischief)
        return
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    log.info("watching %s", options.remote)
    Watcher(options.remote, send, mischief=options.mischief).run(options.every, ending)


def signal_flows() -> Send:
    """`flows.signal`, with Django set up as a process of its own needs it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    import django

    import flows

    django.setup()
    return flows.signal


if __name__ == "__main__":
    main(sys.argv[1:])
