"""Our pages under two themes for the admin that people use, with pictures in .outlast/screenshots to look at.

make test-browser THEMES=1

The newest releases that this Python can have are installed below .outlast/themes, beside the virtual environment and not in it. To see what
is newest in the world, take the newest Python and Django: `make test-browser THEMES=1 PYTHON=python3.13 VENV=.venv61
REQUIREMENTS=requirements-django61.txt`.
"""

import os
import subprocess
import sys

from project.dev.folders import HOME

THEMES = {"unfold": "django-unfold", "jazzmin": "django-jazzmin"}


def main(arguments):
    folder = os.path.join(HOME, "themes", "python%d.%d" % sys.version_info[:2])
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-deps", "--upgrade"]
    subprocess.run([*pip, "--target", folder, *THEMES.values()], check=True)
    codes = [run(theme, folder, arguments) for theme in THEMES]
    return max(codes)


def run(theme, folder, arguments):
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    given = {**os.environ, "OUTLAST_THEME": theme, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "pytest", "--ds", "tests.support.themed", "tests/browser/test_themes.py", *arguments]
    print("\n%s: %s" % (theme, " ".join(command[1:])), flush=True)
    return subprocess.call(command, env=given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
