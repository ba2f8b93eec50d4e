"""Children: runs that other runs have started. A fan is their group, a branch one of them (docs/how-to/composition.md)."""

from __future__ import annotations

from flows import registry
from flows.registry import Watch


def register() -> None:
    """Own the waits for children, and have the clock look for what is to be counted, started and stopped."""
    from flows.services.children import counting, plane, stopping
    from flows.store import fans

    registry.register_wait_plane("children", plane.ChildrenPlane())
    registry.register_watch(Watch(stopping.WATCH, fans.EXISTS, counting.due))
