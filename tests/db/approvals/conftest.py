from __future__ import annotations

from tests.support.approving import world
from tests.support.tooling import tools

__all__ = ["tools", "world"]
