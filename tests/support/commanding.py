"""`manage.py flows …` as a shell sees it: exit code, stdout, stderr. The fixture `cli` runs it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

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

    def run(*arguments: object) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        code = 0
        try:
            Command(stdout=out, stderr=err).run_from_argv(["manage.py", "flows", *map(str, arguments)])
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return Ran(code, out.getvalue() + printed.out, err.getvalue() + printed.err)

    return run
