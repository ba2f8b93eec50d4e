"""Removes what the commands made: the virtual environment, the servers' data, caches.  Nothing that git knows."""

import argparse
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHES = (".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", "build", "dist")


def main():
    parser = argparse.ArgumentParser(description="Remove what the commands made.")
    parser.add_argument("--venv", default=".venv")
    venv = os.path.join(ROOT, parser.parse_args().venv)
    python = os.path.join(venv, "bin", "python")
    if os.path.exists(python):
        running = subprocess.run([python, "-m", "project.dev.servers", "status"], cwd=ROOT, stdout=subprocess.PIPE)
        if running.stdout.strip():
            sys.exit("Servers are running; end them first:\n%s" % running.stdout.decode())
    for path in [os.path.join(ROOT, name) for name in (".outlast", *CACHES)] + [venv]:
        if os.path.exists(path):
            shutil.rmtree(path)
            print("removed %s" % os.path.relpath(path, ROOT))
    for folder, folders, _ in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if "__pycache__" in folders:
            folders.remove("__pycache__")
            shutil.rmtree(os.path.join(folder, "__pycache__"))


if __name__ == "__main__":
    main()
