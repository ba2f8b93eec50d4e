"""Runs the tests: first all that can share the machine, in parallel; then those that want it for themselves.

make test                               everything
make test TESTS="tests/unit -k gate"    those, in one run
"""

import subprocess
import sys

PARALLEL = ["-n", "2", "--dist", "loadgroup", "-m", "not serial"]
SERIAL = ["-m", "serial"]
NOTHING_COLLECTED = 5


def main(arguments):
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
