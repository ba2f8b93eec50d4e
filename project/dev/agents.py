"""`make agents`: the adapters of agent libraries, each with the lowest and the newest release that is supported.

Each release is installed into a folder of its own, before the locked packages on the path; nothing of the virtual environment is changed.
CI tests the locked releases only: whatever is newest today would make it red for no change of ours.
"""

import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYDANTIC_AI = ("tests/db/agent/test_pydantic_ai.py", "tests/db/agent/test_pydantic_outside.py")
OPENAI_AGENTS = ("tests/db/agent/test_openai_agents.py",)
RELEASES = (
    ("pydantic-ai-slim==2.40.0", PYDANTIC_AI),
    ("pydantic-ai-slim", PYDANTIC_AI),
    ("openai-agents==0.24.0", OPENAI_AGENTS),
    ("openai-agents", OPENAI_AGENTS),
)


def main():
    failed = [release for release, tests in RELEASES if not holds(release, tests)]
    if failed:
        print("Failed: %s" % ", ".join(failed))
    return 1 if failed else 0


def holds(release, tests):
    """Whether the adapter's tests pass with this release."""
    home = os.environ.get("OUTLAST_HOME") or os.path.join(ROOT, ".outlast")
    folder = os.path.join(home, "agents", release.replace("==", "-"))
    shutil.rmtree(folder, ignore_errors=True)
    uv = os.path.join(os.path.dirname(sys.executable), "uv")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", folder, release], check=True)
    print(
        "%s: %s"
        % (
            release,
            " ".join(sorted(one for one in os.listdir(folder) if one.startswith(("pydantic_ai_slim-", "openai_agents-")))),
        )
    )
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": folder}).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
