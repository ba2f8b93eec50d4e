"""A small archive: a folder of sources, each in versions, and a book of orders. It stands for whatever a real agent reads.

python -m project.agents.research.archive make FOLDER
python -m project.agents.research.archive publish FOLDER NAME TEXT      the next version of a source
python -m project.agents.research.archive orders FOLDER

FOLDER/sources/NAME/about.json      who publishes it, what it is about; a source may be announced before there is a version of it
FOLDER/sources/NAME/1.txt, 2.txt    its versions; one that is there never changes
FOLDER/orders/REFERENCE.json        what somebody asked for, once under a reference
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

Json = dict[str, Any]

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
DATASET, DOCUMENT = "dataset", "document"
EVENTS = {DATASET: "data.released", DOCUMENT: "document.ready"}
LONGEST = 20_000


class Archive:
    """One folder.

    Args:
        folder: its path.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def key(self, name: str) -> str:
        """The key of the events about a source: two archives may each have one of the same name."""
        return f"{hashlib.sha256(str(self.folder.resolve()).encode()).hexdigest()[:12]}/{name}"

    # ------------------------------------------------------------------ what is there

    def catalogue(self) -> list[Json]:
        """Each source with its newest version, 0 where there is none; by name. A folder that cannot be read is an OSError."""
        found = []
        for place in sorted((self.folder / "sources").iterdir()):
            if (place / "about.json").exists():
                version = self.newest(place.name)
                known = {"version": version, "digest": digest_of(self.read(place.name, version)) if version else ""}
                found.append({"name": place.name, **json.loads((place / "about.json").read_text()), **known})
        return found

    def newest(self, name: str) -> int:
        """The number of its newest version; 0: there is none."""
        return max((int(one.stem) for one in self._place(name).glob("*.txt")), default=0)

    def read(self, name: str, version: int) -> str:
        """The text of a version.

        Raises:
            FileNotFoundError: there is no such version.
        """
        return (self._place(name) / f"{version}.txt").read_text()[:LONGEST]

    def events(self) -> list[Json]:
        """What the archive has to say, oldest version first: each version that is there, as an event with an id of its own."""
        return [
            {
                "id": f"{self.key(entry['name'])}@{version}",
                "type": EVENTS[entry["kind"]],
                "key": self.key(entry["name"]),
                "payload": {"name": entry["name"], "version": version},
            }
            for entry in self.catalogue()
            for version in range(1, entry["version"] + 1)
        ]

    # ------------------------------------------------------------------ orders

    def order(self, reference: str, names: Sequence[str]) -> Json:
        """Ask for sources; the same reference twice is one order."""
        slip = {"reference": reference, "names": list(names), "state": "open"}
        path = self._slip(reference)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder, suppress(FileExistsError):
            draft = Path(folder, "slip")
            draft.write_text(json.dumps(slip))
            os.link(draft, path)  # whole, and only if it is not there
        return self.found(reference) or slip

    def found(self, reference: str) -> Json | None:
        """The order under that reference; None: there is none."""
        try:
            slip: Json = json.loads(self._slip(reference).read_text())
        except FileNotFoundError:
            return None
        return slip

    def withdraw(self, reference: str) -> Json:
        """Take an order back. Twice is once."""
        slip = {**(self.found(reference) or {"reference": reference, "names": []}), "state": "withdrawn"}
        _written(self._slip(reference), json.dumps(slip))
        return slip

    def orders(self) -> list[Json]:
        return [json.loads(one.read_text()) for one in sorted((self.folder / "orders").glob("*.json"))]

    # ------------------------------------------------------------------ what its own people do

    def announce(self, name: str, *, publisher: str, about: Sequence[str], kind: str = DOCUMENT, title: str = "") -> None:
        """A source that there is, or will be."""
        said = {"publisher": publisher, "about": list(about), "kind": kind, "title": title or name}
        _written(self._place(name) / "about.json", json.dumps(said))

    def publish(self, name: str, text: str) -> int:
        """Its next version."""
        version = self.newest(name) + 1
        _written(self._place(name) / f"{version}.txt", text)
        return version

    def _place(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a source")
        return self.folder / "sources" / name

    def _slip(self, reference: str) -> Path:
        return self.folder / "orders" / f"{reference.replace('/', '--')}.json"


def digest_of(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _written(path: Path, text: str) -> None:
    """Written whole: a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".draft", delete=False) as draft:
        draft.write(text)
    Path(draft.name).replace(path)


def sample(folder: str | Path) -> Archive:
    """A question about a bridge: two reports are there, a release of measurements and a report of somebody unknown are to come."""
    archive = Archive(folder)
    archive.announce("load-test", publisher="city", about=["bridge/strength"], title="Load test of the spring")
    archive.announce("inspection", publisher="city", about=["bridge/rust"], title="Inspection of the steel")
    archive.announce("sensors", publisher="city", about=["bridge/strength"], kind=DATASET, title="Strain gauges, quarterly")
    archive.announce("local-blog", publisher="somebody", about=["bridge/traffic"], title="What drives over our bridge")
    archive.publish("load-test", "Forty tonnes were put on it.\nbridge/strength: holds 70\n")
    archive.publish("inspection", "bridge/rust: holds 80\n")
    return archive


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="archive", description="The research agent's archive.")
    parser.add_argument("do", choices=["make", "publish", "orders"])
    parser.add_argument("folder")
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("text", nargs="?", default="")
    options = parser.parse_args(arguments)
    if options.do == "make":
        sample(options.folder)
        sys.stdout.write(f"An archive is in {options.folder}.\n")
    elif options.do == "orders":
        sys.stdout.write(json.dumps(Archive(options.folder).orders(), indent=2) + "\n")
    else:
        version = Archive(options.folder).publish(options.name, options.text)
        sys.stdout.write(f"{options.name} is there in version {version}.\n")


if __name__ == "__main__":
    main(sys.argv[1:])
