"""`manage.py flows …` as a shell sees it: exit code, stdout, stderr. The fixture `cli` runs it, and `approvals_cli` `manage.py approvals …`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management.base import BaseCommand

from approvals.management.commands import approvals
from flows.management.commands.flows import Command


@dataclass(frozen=True)
class Ran:
    """One run of the command, as a shell sees it."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `manage.py flows …` as from a shell."""
    return _runner(Command, "flows", capsys)


@pytest.fixture
def approvals_cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `manage.py approvals …` as from a shell."""
    return _runner(approvals.Command, "approvals", capsys)


def _runner(command: type[BaseCommand], name: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: object) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        code = 0
        try:
            command(stdout=out, stderr=err).run_from_argv(["manage.py", name, *map(str, arguments)])
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return Ran(code, out.getvalue() + printed.out, err.getvalue() + printed.err)

    return run
