"""Tells a story in one process after another, each of which may be killed at a numbered point; how it must end, its test says."""

from __future__ import annotations

from pathlib import Path

from tests.support import crash
from tests.support.chaosapp.nursery import Nursery
from tests.support.processes import Site

KILLED = -9


class Teller:
    """Each case has a key and a folder (`world`) of its own."""

    def __init__(self, site: Site, nursery: Nursery, folder: Path) -> None:
        self.site, self.nursery, self.folder, self.cases = site, nursery, folder, 0

    def begin(self) -> None:
        self.cases += 1
        self.key = f"case-{self.cases:04d}"
        self.world = self.folder / self.key
        self.world.mkdir()

    def tell(self, story: str, fatal: int | None = None, *, cut: int | None = None) -> list[str]:
        """The points that a process passed; it is killed at the fatal one, or goes on though its connection is cut at one."""
        path = self.world / f"points-{len(list(self.world.glob('points-*')))}"
        order = f"record:{path}"
        if fatal is not None or cut is not None:
            order = f"cut:{cut}:{path}" if fatal is None else f"at:{fatal}:{path}"
        code = self.nursery.run(story, self.world, self.key, order)
        assert code == (0 if fatal is None else KILLED), f"{self.key}: code {code}\n{self.nursery.log.read_text()[-3000:]}"
        return crash.points(path)
