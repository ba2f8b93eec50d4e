#!/usr/bin/env python3
"""Make the virtual environment of this checkout, or find in well under a second that it is up to date.

    python3 project/dev/bootstrap.py [--venv .venv] [--requirements requirements.txt]

Runs before anything is installed, so: standard library only, and syntax that any Python 3 can read (an old one
must come far enough to say which one is needed).  An environment counts as made only when the stamp file is in it,
and the stamp is the last thing written: a run that was interrupted is never taken for a finished one.
"""

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OLDEST, NEWEST = (3, 11), (3, 13)
STAMP = "outlast-ready.json"
HALF = "outlast-unfinished"
PIP = "https://pypi.org/pypi/pip/json"


class SetupError(Exception):
    """The set-up cannot go on; the text says why and names the way out."""


def main():
    parser = argparse.ArgumentParser(description="Make or refresh the virtual environment of this checkout.")
    parser.add_argument("--venv", default=".venv")
    parser.add_argument("--requirements", default="requirements.txt")
    options = parser.parse_args()
    venv = os.path.join(ROOT, options.venv)
    requirements = os.path.join(ROOT, options.requirements)
    try:
        if not is_ready(venv, requirements):
            with Locked(os.path.join(ROOT, ".outlast"), os.path.basename(venv)):
                if not is_ready(venv, requirements):  # another run may have made it while this one waited
                    make(venv, requirements)
    except SetupError as error:
        sys.exit("\nSet-up stopped: %s" % error)
    except OSError as error:
        sys.exit("\nSet-up stopped: %s%s" % (error, disk_hint(error)))
    except KeyboardInterrupt:
        sys.exit("\nSet-up interrupted; the next run starts it again.")


def is_ready(venv, requirements):
    try:
        with open(os.path.join(venv, STAMP)) as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return False
    # The interpreter is asked for, too: a system upgrade can leave an environment whose Python is gone.
    return stamp == wanted_stamp(requirements, stamp.get("python")) and os.path.exists(interpreter(venv))


def wanted_stamp(requirements, python):
    # Not pyproject.toml, because the project is installed as a pointer to this folder; but the folder, because the
    # pointer and the first line of every script in the environment name it.
    return {"requirements": digest(requirements), "python": python, "folder": ROOT}


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def interpreter(venv):
    return os.path.join(venv, "bin", "python")


class Locked:
    """Two runs in one checkout wait for each other; the lock goes with the process, whatever ends it."""

    def __init__(self, folder, name):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "setup-%s.lock" % name.lstrip("."))

    def __enter__(self):
        self.file = open(self.path, "w")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another set-up of this checkout to finish ...")
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def make(venv, requirements):
    started = time.monotonic()
    python, version = suitable_python()
    clear_old(venv)
    log = os.path.join(ROOT, ".outlast", "setup.log")
    say("Making %s with Python %s ..." % (os.path.relpath(venv, ROOT), version))
    os.makedirs(venv)
    open(os.path.join(venv, HALF), "w").close()
    make_environment(python, venv, log)
    say("Installing the packages of %s (once; a minute or so) ..." % os.path.relpath(requirements, ROOT))
    pip = [interpreter(venv), "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check"]
    run([*pip, "-r", requirements], log, "installing the packages")
    run([*pip, "--no-deps", "--no-build-isolation", "-e", ROOT], log, "installing the project itself")
    write_stamp(venv, wanted_stamp(requirements, version))
    os.unlink(os.path.join(venv, HALF))
    say("Ready after %.0f s." % (time.monotonic() - started))


def suitable_python():
    """This interpreter if it is of a supported version, else one found on the PATH."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        # A virtual environment made out of another one would depend on that one: go back to its base.
        return getattr(sys, "_base_executable", None) or sys.executable, "%d.%d.%d" % sys.version_info[:3]
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which("python3.%d" % minor)
        if found:
            ask = subprocess.run(
                [found, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            version = ask.stdout.decode().strip()
            if ask.returncode == 0 and version.startswith("3.%d." % minor):
                return found, version
    raise SetupError(
        "Python %d.%d to %d.%d is needed and this is %d.%d. Install one of them, or name it:"
        " make test PYTHON=python3.13" % (OLDEST + NEWEST + tuple(sys.version_info[:2]))
    )


def clear_old(venv):
    if not os.path.lexists(venv):
        return
    ours = [STAMP, HALF]
    if not any(os.path.exists(os.path.join(venv, name)) for name in ours) and os.listdir(venv):
        raise SetupError(
            "%s exists and was not made by this program. Move it away, or choose another folder:"
            " make test VENV=.venv-outlast" % venv
        )
    say("Removing the outdated or unfinished %s ..." % os.path.relpath(venv, ROOT))
    # The marker of the unfinished goes last: if this removal is interrupted the folder is still known as ours.
    open(os.path.join(venv, HALF), "w").close()
    for name in os.listdir(venv):
        path = os.path.join(venv, name)
        if name != HALF:
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    shutil.rmtree(venv)


def make_environment(python, venv, log):
    """With pip in it; also where the distribution has split ensurepip off (Debian, Ubuntu)."""
    if subprocess.run([python, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL).returncode == 0:
        run([python, "-m", "venv", venv], log, "making the virtual environment")
        return
    run(
        [python, "-m", "venv", "--without-pip", venv],
        log,
        "making the virtual environment (on Debian or Ubuntu: apt-get install python3-venv)",
    )
    wheel = download_pip(venv)
    # A wheel is a zip archive, and pip's can install itself from inside it.
    run([interpreter(venv), os.path.join(wheel, "pip"), "install", "-q", "--no-input", wheel], log, "installing pip")
    os.unlink(wheel)


def download_pip(venv):
    say("This Python comes without pip; fetching it ...")
    try:
        with urllib.request.urlopen(PIP, timeout=60) as answer:
            files = json.loads(answer.read().decode())["urls"]
        chosen = next(file for file in files if file["packagetype"] == "bdist_wheel")
        with urllib.request.urlopen(urllib.parse.urljoin(PIP, chosen["url"]), timeout=120) as answer:
            content = answer.read()
    except (urllib.error.URLError, OSError, StopIteration, ValueError) as error:
        raise SetupError(
            "this Python has no ensurepip, and pip could not be fetched (%s). Install it with the system's packages"
            " (Debian, Ubuntu: apt-get install python3-venv), then run the same command again." % error
        ) from None
    if hashlib.sha256(content).hexdigest() != chosen["digests"]["sha256"]:
        raise SetupError("the pip that was fetched does not have the published checksum; try again.")
    path = os.path.join(venv, chosen["filename"])
    with open(path, "wb") as file:
        file.write(content)
    return path


def run(command, log, what):
    unwanted = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV")
    environment = {key: value for key, value in os.environ.items() if key not in unwanted}
    with open(log, "w") as output:
        code = subprocess.call(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=environment)
    if code:
        with open(log, errors="replace") as output:
            lines = output.read().strip().splitlines()
        shown = [line for line in lines if not line.startswith("WARNING")] or lines
        raise SetupError(
            "%s failed.\n\n  %s\n\n%s\nThe whole output is in %s."
            % (what, "\n  ".join(shown[-12:]), diagnose("\n".join(lines)), os.path.relpath(log, ROOT))
        )


def diagnose(output):
    if re.search(r"No space left on device|Errno 28|Disk quota exceeded", output):
        return "The disk is full: free some space (about 600 MB are needed here) and run the same command again."
    if re.search(
        r"NewConnectionError|NameResolution|Temporary failure|Max retries|timed out|Network is unreachable|"
        r"Connection(Error| refused| broken|Reset)|ProxyError|SSLError",
        output,
    ):
        return (
            "The package index could not be reached. Check the network (or the proxy: HTTPS_PROXY; or your own"
            " index: PIP_INDEX_URL) and run the same command again."
        )
    if re.search(r"No matching distribution|Could not find a version", output):
        return (
            "A package has no release for this Python or platform. Python 3.11 to 3.13 on Linux x86-64 or macOS is"
            " what everything has wheels for; see 'Troubleshooting' in README.md."
        )
    return "Run the same command again; if it stays, remove the virtual environment first."


def disk_hint(error):
    return "\n" + diagnose("No space left on device") if error.errno == 28 else ""


def write_stamp(venv, stamp):
    path = os.path.join(venv, STAMP)
    with open(path + ".new", "w") as file:
        json.dump(stamp, file)
    os.replace(path + ".new", path)


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    main()
