"""Every check that needs no test run.  All are run, so that one look shows all there is to mend."""

import os
import secrets
import subprocess
import sys
import time

BIN = os.path.dirname(sys.executable)
PRODUCTION = {"OUTLAST_ENV": "production", "SECRET_KEY": secrets.token_urlsafe(50), "ALLOWED_HOSTS": "www.example.org"}
CHECKS = [
    ("format", ["ruff", "format", "--check", "--output-format", "concise", "."], {}),
    ("rules", ["ruff", "check", "--output-format", "concise", "."], {}),
    ("types", ["mypy"], {}),
    ("layers", ["lint-imports"], {}),
    ("migrations", ["python", "manage.py", "makemigrations", "--check", "--dry-run"], {}),
    ("deployment", ["python", "-W", "error", "manage.py", "check", "--deploy", "--fail-level", "WARNING"], PRODUCTION),
]


def main():
    failed = []
    for name, command, environment in CHECKS:
        started = time.monotonic()
        done = subprocess.run(
            [os.path.join(BIN, command[0]), *command[1:]],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode:
            failed.append(name)
            print(done.stdout.decode(errors="replace"), flush=True)
        result = "failed" if done.returncode else "clean"
        print("%-11s %s (%.1f s)" % (name, result, time.monotonic() - started), flush=True)
    return "\nFailed: %s" % ", ".join(failed) if failed else 0


if __name__ == "__main__":
    sys.exit(main())
