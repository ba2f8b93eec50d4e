"""Archives: what is on record of a run, kept outside the tables of what lives, before the run is deleted.

    jsonl    one file a batch in the storage, written and synced before anything is deleted; a line is a run
    table    a row of `outlast_archive` a run, in the transaction that deletes it
Values lie in an archive as they lay in the record: what a codec sealed stays sealed. The digest is of the record as it was stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from uuid import UUID, uuid4

from django.core.files.base import File
from django.core.files.storage import Storage, storages
from django.utils import timezone

from flows.core.retention import JSONL, TABLE, Retention
from flows.store import archive, retention

#: Runs whose records are in memory at once, and bytes that a file takes before it goes to the disk.
AT_ONCE = 25
IN_MEMORY = 1 << 20
FORMAT = 1


def digest(record: dict[str, Any]) -> str:
    """Of a record as it was stored, whatever the order of its members."""
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class Archiving:
    """The archive of one batch, as the rules want it; without one, everything goes as it is."""

    def __init__(self, rules: Retention, using: str) -> None:
        self._rules, self._using = rules, using
        self._digests: dict[UUID, str] = {}
        self._file = ""

    def write(self, ids: Sequence[UUID]) -> None:
        """Write these runs where they are kept before anything is deleted (a file). After a crash they are written again, to another one."""
        if self._rules.archive != JSONL or not ids:
            return
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as lines:
            for first in range(0, len(ids), AT_ONCE):
                for one, record in retention.records(ids[first : first + AT_ONCE], self._using).items():
                    if record:
                        self._digests[one] = digest(record)
                        line = {"format": FORMAT, "id": str(one), "digest": self._digests[one], "record": record}
                        lines.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            lines.seek(0)
            self._file = _saved(storages[self._rules.storage], self._rules.path, lines)

    def unchanged(self, ids: Sequence[UUID]) -> list[UUID]:
        """Those of the locked runs that lie in the archive exactly as they are; without files, all of them."""
        if self._rules.archive != JSONL:
            return list(ids)
        found: list[UUID] = []
        for first in range(0, len(ids), AT_ONCE):
            records = retention.records(ids[first : first + AT_ONCE], self._using)
            found += [one for one, record in records.items() if digest(record) == self._digests.get(one)]
        return found

    def keep(self, ids: Sequence[UUID]) -> None:
        """Say where these locked runs are kept, or keep them there; in the transaction that deletes them."""
        if self._rules.archive == JSONL:
            archive.point([(one, self._digests[one]) for one in ids], self._file, self._using)
        elif self._rules.archive == TABLE:
            for first in range(0, len(ids), AT_ONCE):
                records = retention.records(ids[first : first + AT_ONCE], self._using)
                archive.keep([(one, digest(record), json.dumps(record)) for one, record in records.items()], self._using)


def _saved(storage: Storage, folder: str, lines: IO[bytes]) -> str:
    """The file's name in the storage. When this returns, the file outlasts a power cut, as far as the storage can say so."""
    now = timezone.now()
    name = storage.save(f"{folder}/{now:%Y/%m/%d}/{now:%H%M%S}-{uuid4().hex[:12]}.jsonl", File(lines))
    try:
        path = storage.path(name)
    except NotImplementedError:  # not on a disk of ours: it is kept when `save` returns
        return name
    _sync(Path(path), os.O_RDONLY)
    _sync(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY)
    return name


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
