from __future__ import annotations

from tests.support.approving import world

__all__ = ["world"]
