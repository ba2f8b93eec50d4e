"""Compiles the lock files from pyproject.toml, for every supported Python and platform at once.

requirements.txt gives Python 3.11 Django 5.2 and newer ones Django 6.0, because django-celery-beat 2.9 refuses 6.1;
requirements-django61.txt is without it, and Beat then uses Celery's own scheduler. requirements-docs.txt is what builds
the site of the documentation (`make docs`).
"""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    compile_lock(
        "requirements.txt", "--python-version", "3.11", "--extra", "beat", "--extra", "encryption", "--extra", "schedules"
    )
    compile_lock(
        "requirements-django61.txt",
        "--python-version",
        "3.12",
        "--extra",
        "encryption",
        "--extra",
        "schedules",
        given="Django>=6.1,<6.2\n",
    )
    compile_lock("requirements-docs.txt", "--python-version", "3.11", group="docs", sources=())


def compile_lock(output, *options, given="", group="dev", sources=("pyproject.toml",)):
    command = [
        os.path.join(os.path.dirname(sys.executable), "uv"),
        "pip",
        "compile",
        "--no-config",
        "--universal",
        "--custom-compile-command",
        "make lock",
        "--group",
        group,
        *options,
        "--constraints",
        "-",
        "--output-file",
        output,
        "--quiet",
        *sources,
    ]
    # Only the public index: an address of this machine must not decide what others install.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
    if "PIP_CERT" in os.environ:
        environment["SSL_CERT_FILE"] = os.environ["PIP_CERT"]
    subprocess.run(command, input=given.encode(), cwd=ROOT, env=environment, check=True)
    print("%s is up to date with pyproject.toml." % output)


if __name__ == "__main__":
    main()
