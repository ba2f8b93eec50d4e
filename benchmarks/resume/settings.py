"""The project's own settings; nothing is published."""

from __future__ import annotations

from benchmarks.replaying.settings import *  # noqa: F403 - that is how settings are extended
