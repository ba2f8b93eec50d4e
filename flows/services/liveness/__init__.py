"""Liveness: what nobody owns, wakes, ends or services any more is found (`scanning`), mended (`mending`), and decided about (`acting`)."""

from __future__ import annotations

from flows.registry import Watch
from flows.services.liveness import scanning
from flows.store import findings


def watch() -> Watch:
    """What the clock looks for: that a scan is due."""
    seconds = scanning.interval()
    return Watch("liveness", findings.DUE.format(seconds=seconds) if seconds is not None else "false", scanning.scan_due)
