"""make adopt: the tutorial, done literally, in an empty folder.

The wheel is built and installed into a fresh virtual environment; `django-admin startproject` makes the project; what is written into it
are the code blocks of docs/tutorial/first-flow.md, and its commands are run as they stand there. Then both of its flows are run to their end
by a real worker and Beat, the tests of docs/how-to/testing.md run with the wheel's pytest plugin, and everything is taken out again: no
table, function or type of ours may be left.

The last line is JSON: the versions, the seconds of each step. Exit code 0: every step held.
PYTHON=, VENV= and REQUIREMENTS= choose the pair of Python and Django, as for `make test`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from project.dev import adopt_host as host
from project.dev import demo_setup, engines
from project.dev.demo_setup import DemoError

ROOT = demo_setup.ROOT
BIN = Path(sys.executable).parent
PACKAGES = ("flows", "approvals", "tasks")
LEFT = """
SELECT 'table ' || relname FROM pg_class WHERE relname LIKE 'outlast%%'
UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE proname LIKE 'flows\\_%%' OR proname LIKE 'outlast%%' OR proname LIKE 'approvals\\_%%'
UNION ALL SELECT 'type ' || typname FROM pg_type WHERE typname LIKE 'outlast%%'
ORDER BY 1
"""


class Adoption:
    """A project of somebody else's, and what is done to it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.site, self.venv = folder, folder / "site", folder / "venv"
        self.seconds: dict[str, float] = {}
        names = ("PYTHONPATH", "DJANGO_SETTINGS_MODULE", "VIRTUAL_ENV", "REDIS_KEY_PREFIX")
        kept = {name: value for name, value in os.environ.items() if name not in names}
        self.database = environment["DATABASE_URL"]
        self.environment = {
            **kept,
            "DATABASE_URL": self.database,
            "PREFIX": environment["REDIS_KEY_PREFIX"],
            "PATH": f"{self.venv / 'bin'}{os.pathsep}{kept.get('PATH', '')}",
        }

    def step(self, name: str, do: Callable[[], object]) -> None:
        began = time.monotonic()
        do()
        self.seconds[name] = round(time.monotonic() - began, 1)
        print(f"{name:11} {self.seconds[name]:5.1f} s", flush=True)

    def sh(self, *command: str, stdin: str | None = None, cwd: Path | None = None) -> str:
        """What a command prints; it has to end well."""
        done = subprocess.run(
            command, cwd=cwd or self.site, env=self.environment, input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise DemoError(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-6000:]}")
        return done.stdout + done.stderr

    def manage(self, *words: str, stdin: str | None = None) -> str:
        return self.sh("python", "manage.py", *words, stdin=stdin)

    # ---------------------------------------------------------------- the steps

    def build(self) -> None:
        self.sh(str(BIN / "python"), "-m", "hatchling", "build", "-t", "wheel", "-d", str(self.folder), cwd=ROOT)
        listed = self.sh("git", "ls-files", *PACKAGES, cwd=ROOT).split()
        inside = self.sh(str(BIN / "python"), "-m", "zipfile", "-l", str(self.wheel()), cwd=ROOT)
        if missing := [name for name in listed if not re.search(rf"^{re.escape(name)}\s", inside, re.MULTILINE)]:
            raise DemoError(f"not in the wheel: {', '.join(missing)}")
        if foreign := {name.split("/")[0] for name in re.findall(r"^(\S+/\S+)", inside, re.MULTILINE)} - {
            *PACKAGES,
            f"{self.wheel().name.split('-py3')[0]}.dist-info",
        }:
            raise DemoError(f"in the wheel, and not ours: {', '.join(sorted(foreign))}")

    def wheel(self) -> Path:
        (found,) = self.folder.glob("*.whl")
        return found

    def install(self) -> None:
        """Releases are those that this environment has, so that an index's newest does not decide about our tests."""
        frozen = self.sh(str(BIN / "uv"), "pip", "freeze", "--python", sys.executable, "--exclude-editable", cwd=ROOT)
        pinned = [line for line in frozen.splitlines() if re.match(r"[\w.-]+==", line)]  # what it says besides is for people
        (self.folder / "constraints.txt").write_text("\n".join(pinned))
        self.sh(str(BIN / "uv"), "venv", "--quiet", "--python", sys.executable, str(self.venv), cwd=ROOT)
        command = ("pip", "install", "--quiet", "--python", str(self.venv / "bin" / "python"))
        limits = ("--constraint", str(self.folder / "constraints.txt"))
        self.sh(str(BIN / "uv"), *command, *limits, str(self.wheel()), "pytest", "pytest-django", cwd=ROOT)

    def project(self) -> None:
        self.site.mkdir()
        self.sh("django-admin", "startproject", "yourproject", ".")
        self.manage("startapp", "yourapp")
        host.before(self.site)
        self.manage("check")
        self.manage("migrate", "--verbosity", "0")

    def adopt(self) -> None:
        host.write(self.site)
        for line in host.shell("Then:"):
            said = self.sh(*line.split())
            if complaints := set(re.findall(r"outlast_\w+\.[EW]\d+", said)) - host.EXPECTED[line.split()[2]]:
                raise DemoError(f"{line} complains about us ({', '.join(sorted(complaints))}):\n{said}")
        said = self.manage("check")
        if "no issues" not in said:
            raise DemoError(said)
        self.manage("makemigrations", "--check", "--dry-run")
        self.manage("findstatic", *host.statics(), "--verbosity", "0")

    def run(self) -> None:
        with self.processes() as logs:
            try:
                print(self.sh("python", "drive.py").strip(), flush=True)
            except DemoError as error:
                raise DemoError(f"{error}\n{logs()}") from None
        shown = self.manage("flows", "show", "refund:refund-4711")
        if "complete" not in shown:
            raise DemoError(shown)

    @contextmanager
    def processes(self) -> Iterator[Callable[[], str]]:
        """The commands of "Run it", until the block ends; none of them outlives this process."""
        started, files = [], []
        for number, line in enumerate(host.shell("## 5. Run it")):
            path, words = self.folder / f"process-{number}.log", line.split()
            file = path.open("w")
            command = engines.child("--signal", "9", "--", str(self.venv / "bin" / words[0]), *words[1:])
            started.append(subprocess.Popen(command, cwd=self.site, env=self.environment, stdout=file, stderr=subprocess.STDOUT))
            files.append((path, file))
        try:
            yield lambda: "\n".join(path.read_text()[-3000:] for path, _ in files)
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(30)
            for _, file in files:
                file.close()

    def tests(self) -> None:
        host.write_tests(self.site)
        self.sh("python", "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider")

    def uninstall(self) -> None:
        for label in ("outlast_approvals", "outlast_flows"):
            self.manage("migrate", label, "zero", "--verbosity", "0")
        with psycopg.connect(self.database) as connection:
            if left := [row[0] for row in connection.execute(LEFT)]:
                raise DemoError(f"left behind: {', '.join(left)}")
        host.remove(self.site)
        self.sh(
            str(BIN / "uv"), "pip", "uninstall", "--quiet", "--python", str(self.venv / "bin" / "python"), "outlast", cwd=ROOT
        )
        self.manage("check")
        self.manage("migrate", "--verbosity", "0")


def main() -> int:
    with demo_setup.own_folder("adopt") as folder:
        adoption = Adoption(folder, demo_setup.own_servers(folder))
        try:
            for name in ("build", "install", "project", "adopt", "run", "tests", "uninstall"):
                adoption.step(name, getattr(adoption, name))
        except DemoError as error:
            print(error, file=sys.stderr)
            return 1
        versions = adoption.sh("python", "-c", "import django, sys; print(sys.version.split()[0], django.__version__)").split()
    print(
        json.dumps(
            {
                "python": versions[0],
                "django": versions[1],
                "seconds": adoption.seconds,
                "total": round(sum(adoption.seconds.values()), 1),
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
