"""`make resume`: what going on costs after a stop, for an agent turn and for a conversation that begins again.

    make resume                  a project of 24 modules
    make resume N=36             of more; at least 8, at most 36
    make resume AT_ONCE=4        a model that asks for four files in one answer

An agent lists a project, reads its files and makes four edits; then its limit of tokens is reached, before it has verified them. A person allows
more. On stdout one JSON line: model tokens and calls of tools before and after that, of ours (`ours`), of a conversation that begins again
(`restart`) and, to compare, of one that was written down whole (`kept`). The bars: ours at most 10 % of before, and no listing and no file read
again; the restart at least 80 %. Where the limit is, a pilot of each runner says: what it has used when it asks for verification. Exit
code 1: a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.replaying.run import database
from benchmarks.resume import shop

NAME = "bench_resume"
OURS_MOST, RESTART_LEAST = 0.10, 0.80


def main() -> int:
    parser = argparse.ArgumentParser(prog="resume", description="What going on costs after a stop.")
    parser.add_argument("--n", type=int, default=24, help="modules of the project")
    parser.add_argument("--at-once", type=int, default=1, choices=range(1, 5), help="files that the model asks for in one answer")
    options = parser.parse_args()
    if not 8 <= options.n <= len(shop.NOUNS):
        parser.error(f"--n is from 8 to {len(shop.NOUNS)}")
    os.environ |= {"DATABASE_URL": database(NAME), "DJANGO_SETTINGS_MODULE": "benchmarks.resume.settings"}
    with tempfile.TemporaryDirectory(prefix="resume-") as folder:
        line = measure(Path(folder), options.n, options.at_once)
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def measure(home: Path, files: int, at_once: int) -> dict[str, Any]:
    """All three, each in folders of its own."""
    import django

    django.setup()
    from benchmarks.resume.model import Model

    ask = Model(at_once)
    logging.disable(logging.WARNING)
    ours = durable_run(ask, home, files)
    restart, kept = conversations(ask, home, files)
    held = all(ours["ratio"][what] <= OURS_MOST and restart["ratio"][what] >= RESTART_LEAST for what in ("tokens", "tools"))
    again = [name for name in ours["after"]["called"] if name in ("list_project", "read_file")]
    return {
        "workload": "resume",
        "figure": "after ÷ before a stop: model tokens",
        "files": files,
        "at_once": at_once,
        "ours": ours,
        "restart": restart,
        "kept": kept,
        "read_again": len(again),
        "bars": {"ours": OURS_MOST, "restart": RESTART_LEAST},
        "ok": held and not again and {one["choice"] for one in (ours, restart, kept)} == {"built"},
    }


def durable_run(ask: Any, home: Path, files: int) -> dict[str, Any]:
    """An agent turn, its limit, a person, and another worker."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    from benchmarks.resume import durable
    from flows import budgets
    from flows.models import Workflow

    call_command("migrate", verbosity=0)
    person = get_user_model().objects.create_superuser("ann")
    fresh(home / "pilot", files)
    pilot = durable.flow(ask, 10_000_000).start({}, by=person)
    durable.work()
    limit = before_verify(durable.used(pilot)) + durable.EACH  # with less than this left no call is begun

    fresh(home / "ours", files)
    run = durable.flow(ask, limit).start({}, by=person)
    durable.work()
    assert Workflow.objects.get(pk=run.id).error_code == "BUDGET_EXHAUSTED"
    stopped, before = durable.newest(run), durable.used(run)
    edits = len(shop.revisions())
    budgets.raise_(run, "model_tokens", by_amount=10 * durable.EACH, by=person, reason="continue")
    durable.work()
    return told(before, durable.used(run, stopped), edits)


def conversations(ask: Any, home: Path, files: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """One that begins again after its stop, and one that goes on with all that was said."""
    from benchmarks.resume.chat import talk

    fresh(home / "chat-pilot", files)
    limit = before_verify(talk(ask, []))
    fresh(home / "restart", files)
    lines: list[str] = []
    before = talk(ask, lines, limit)
    edits = len(shop.revisions())
    shutil.copytree(home / "restart", home / "kept")
    restarted = talk(ask, [])
    shop.place[0] = home / "kept"
    kept = talk(ask, [*lines, "person: continue"])
    return told(before, restarted, edits), told(before, kept, edits)


def fresh(folder: Path, files: int) -> None:
    """The project as it was, for the tools."""
    shop.write(folder, files)
    shop.place[0] = folder


def before_verify(used: Any) -> int:
    """A limit that is reached where it asks for verification: in the middle of the call before, as prompts of two runs differ by a few bytes."""
    place = used.asked.index(["verify"])
    return int(sum(used.tokens[:place]) - used.tokens[place - 1] // 2)


def told(before: Any, after: Any, edits: int) -> dict[str, Any]:
    """Both halves in figures, from what was counted."""
    assert edits == before.tools.count("edit_file") == 4, before.tools
    assert "verify" not in before.tools
    assert not before.choice
    halves = {
        name: {"tokens": sum(one.tokens), "models": len(one.tokens), "tools": len(one.tools)}
        for name, one in (("before", before), ("after", after))
    }
    ratio = {what: round(halves["after"][what] / halves["before"][what], 3) for what in ("tokens", "tools")}
    return {
        "before": halves["before"],
        "after": halves["after"] | {"called": sorted(set(after.tools))},
        "ratio": ratio,
        "choice": after.choice,
    }


if __name__ == "__main__":
    sys.exit(main())
