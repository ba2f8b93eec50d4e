"""The API's own description (OpenAPI 3.1): a file of the package, which the tests hold to what the API does."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from approvals.services.once import Outcome
from approvals.views.endpoint import Call

FILE = Path(__file__).with_name("openapi.json")


def shown(_call: Call) -> Outcome:
    """The file."""
    return Outcome(200, described())


@lru_cache(maxsize=1)
def described() -> dict[str, Any]:
    """The description as data."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found
