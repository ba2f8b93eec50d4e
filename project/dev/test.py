"""Runs the tests: first all that can share the machine, in parallel; then those that want it for themselves.

make test                               everything but what a browser is needed for
make test TESTS="tests/unit -k gate"    those, in one run
make test-browser                       what a browser is needed for
"""

import subprocess
import sys

PARALLEL = ["-n", "2", "--dist", "loadgroup", "-m", "not serial and not browser"]
SERIAL = ["-m", "serial and not browser"]
BROWSER = ["-n", "2", "--dist", "worksteal", "-m", "browser", "tests/browser", "tests/unit/agents"]
NOTHING_COLLECTED = 5


def main(arguments):
    if arguments[:1] == ["--browser"]:
        return pytest(arguments[1:] or BROWSER)
    if arguments:
        return pytest(arguments)
    codes = [pytest(PARALLEL), pytest(SERIAL)]
    ran = [code for code in codes if code != NOTHING_COLLECTED]
    return max(ran) if ran else NOTHING_COLLECTED


def pytest(arguments):
    print("\npytest %s" % " ".join(arguments), flush=True)
    return subprocess.call([sys.executable, "-m", "pytest", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
