"""The coding agent on a real repository: a worker is killed half-way, CI repeats itself, a reviewer asks for changes.

make demo                  answers the reviews itself, and ends 0 only if every effect happened exactly once
make demo INTERACTIVE=1    leaves the reviews to you
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from project.dev import demo_report, demo_setup, engines, procs, up
from project.dev.demo_setup import DemoError

SECONDS = float(os.environ.get("OUTLAST_DEMO_SECONDS", "180"))
INTERACTIVE = os.environ.get("INTERACTIVE", "") not in ("", "0")
CHANGES = "Good. Please mention the new version in the changelog."
GRACE = 5  # at the end nobody waits long for a worker: what it may still be doing does not depend on it
LIVE = ("runnable", "running", "waiting", "paused", "reconciling", "cancelling")
BEGAN = time.monotonic()


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _: sys.exit(128 + caught))
    password = secrets.token_urlsafe(demo_setup.PASSWORD_BYTES)
    with demo_setup.own_folder() as folder:
        say("A database of its own, two people and a repository ...")
        environment = demo_setup.own_servers(folder)
        demo_setup.start_django(environment)
        robin, _ = demo_setup.make_people(password)
        remote = demo_setup.make_repository(folder)
        with procs.Procs(env=environment, log_dir=str(folder / "logs")) as running:
            try:
                return Story(running, folder, remote, robin, password).tell()
            finally:
                running.stop(grace=GRACE)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def say(text: str) -> None:
    print(f"{time.monotonic() - BEGAN:6.1f} s  {text}", flush=True)


class Story:
    def __init__(self, running: procs.Procs, folder: Path, remote: Path, robin: Any, password: str) -> None:
        self.running, self.folder, self.remote, self.robin, self.password = running, folder, remote, robin, password
        self.deadline = time.monotonic() + SECONDS
        self.workflow: Any = None
        self.answers: list[tuple[str, str]] = []

    def tell(self) -> int:
        import flows
        from project.agents.coding.git import head_of

        main_before = str(head_of(str(self.remote)))
        self.start_processes()
        self.start_workflow()
        self.kill_the_worker()
        if INTERACTIVE:
            self.wait_for_a_person()
        else:
            self.answer("changes", CHANGES)
            self.answer("approve", "Thank you.")
        self.wait("its end", self.ended)
        description = flows.describe(self.workflow)
        demo_report.print_timeline(description)
        demo_report.print_operations(description.id)
        print(f"\nOutcome: {description.outcome}\nResult:  {description.result}")
        sound = demo_report.check_effects(description, self.remote, main_before)
        sound = sound and (INTERACTIVE or demo_report.answers_of(description) == self.answers)
        print(f"\n{'It holds.' if sound else 'It does NOT hold.'} Logs: {os.path.relpath(self.folder / 'logs')}")
        if INTERACTIVE and sys.stdin.isatty():
            with contextlib.suppress(KeyboardInterrupt, EOFError):
                input("\n  The admin stays up: look at the workflow. Enter ends everything. ")
        return 0 if sound else 1

    def start_processes(self) -> None:
        self.running.commands["ci"] = demo_setup.ci_command(self.remote)
        for name in ("worker", "cleanup", "beat", "ci"):
            process = self.running.start(name)
            say(f"{name} is process {process.pid}")

    def start_workflow(self) -> None:
        from project.agents.coding.flows import UpgradeLibrary

        request = {
            "remote": str(self.remote),
            "workspaces": str(self.folder / "workspaces"),
            "library": "latchkey",
            "to": "2.0",
        }
        self.workflow = UpgradeLibrary.start(request, key="upgrade-latchkey", by=self.robin, goal="Upgrade latchkey to 2.0")
        again = UpgradeLibrary.start(request, key="upgrade-latchkey", by=self.robin, goal="Upgrade latchkey to 2.0")
        say(f"Robin started workflow {self.workflow}; the same key once more is the same run ({again.created=})")

    def kill_the_worker(self) -> None:
        """In the middle of the step `test`, whatever it is doing there."""
        caught = False
        while not caught:  # on a slow machine the step may be over before the signal arrives
            self.wait("the tests to run", lambda: self.stands("running", "test"))
            worker = self.running.processes["worker"]
            worker.kill()
            row = self.row()
            caught = row["status"] == "running"
            say(f"The worker runs the candidate's tests: kill -9 {worker.pid}, and all its children")
            say(f"The record says: {row['status']} at {row['node']}. A new worker is started")
            self.running.start("worker")
        self.wait("the work to be taken up", lambda: self.row()["version"] > row["version"])
        say("The work was taken up again")

    def answer(self, verdict: str, comment: str) -> None:
        from project.dev.demo_review import Reviewer

        reviewer = Reviewer("rita", self.password)
        self.wait("a request for approval", lambda: self.waits_for("approval"))
        address = reviewer.open_request()
        if address is None:
            raise DemoError("the workflow waits for an approval, and the admin's inbox shows none")
        digest = reviewer.answer(address, verdict, comment)
        self.answers.append(({"approve": "approved", "deny": "denied"}.get(verdict, verdict), digest))
        say(f"Rita, in the admin, on candidate {digest[:15]}: {verdict}. {comment}")
        self.wait("the answer to be acted upon", lambda: not self.waits_for("approval"))

    def wait_for_a_person(self) -> None:
        port = up.address("OUTLAST_WEB_PORT", 8000)
        self.running.start("web", env={"WEB_ADDRESS": f"127.0.0.1:{port}"})
        self.wait("the admin", lambda: listens(port))
        self.wait("a request for approval", lambda: self.waits_for("approval"))
        self.deadline = float("inf")
        print(
            f"\n  It is your turn: http://127.0.0.1:{port}/admin/   rita / {self.password}"
            "\n  Answer the request for approval (try 'request changes' first). Ctrl-C ends everything.\n",
            flush=True,
        )
        while not self.ended():
            self.wait("an answer", lambda: self.ended() or not self.waits_for("approval"))
            say("Your answer is in the record; the workflow goes on")
            self.wait("the next request, or the end", lambda: self.ended() or self.waits_for("approval"))
            if not self.ended():
                say("The next request is in the inbox")

    def ended(self) -> bool:
        return self.row()["status"] not in LIVE

    def stands(self, status: str, node: str) -> bool:
        row = self.row()
        return (row["status"], row["node"]) == (status, node)

    def waits_for(self, kind: str) -> bool:
        import flows

        return any(wait.kind == kind for wait in flows.describe(self.workflow).waits)

    def row(self) -> dict[str, Any]:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT status, outcome, node, version, error_code FROM outlast_workflow WHERE id = %s",
                [self.workflow.id],
            )
            return dict(zip((column.name for column in cursor.description), cursor.fetchone(), strict=True))

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Looks at the record until it holds. A process that died, or a workflow that needs a person, ends the wait."""
        while not holds():
            row = self.row()
            self.check_processes(what)
            # On the way to its end it gives back what it holds: nobody need act.
            suspended = row["status"] in LIVE and row["status"] != "reconciling" and row["outcome"] not in ("", "WAITING")
            ended = row["status"] not in LIVE and not holds()
            if suspended or ended or time.monotonic() > self.deadline:
                import flows

                demo_report.print_timeline(flows.describe(self.workflow))
                state = f"{row['status']} at {row['node']} {row['outcome']} {row['error_code'] or ''}".strip()
                raise DemoError(f"waited for {what}, and the workflow is {state}")
            time.sleep(0.05)

    def check_processes(self, what: str) -> None:
        for process in self.running.processes.values():
            if not process.is_alive():
                tail = "\n".join(process.output().splitlines()[-15:])
                raise DemoError(f"while waiting for {what}, {process.name} ended by itself:\n{tail}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DemoError, engines.ServerError) as error:
        sys.exit(f"\nThe demonstration stopped: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
