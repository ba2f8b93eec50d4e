"""Files that people give as answers: in Django storage, under a name of their own; what the sender called them is data, kept with the answer.

    measure (hash, size, never more than the cap) ──► keep ──► the answer names the path           one file, one path, for ever
                                                         └─ refused, rolled back ──► remove
A crash between keeping and committing leaves a file that no answer names, and nothing else; `remove_unreferenced` finds those.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.files import File
from django.core.files.storage import Storage, storages
from django.db import transaction
from django.utils import timezone

from approvals.models import Review
from flows.conf import conf
from flows.core import payload
from flows.core.errors import PayloadError
from flows.core.fields import Upload
from flows.services import identify

logger = logging.getLogger("outlast.approvals")

PLACE = "outlast/answers"


@dataclass(frozen=True, slots=True)
class Measured:
    """A file as it was given, and what it is. `sha256`: of what was read, which is all of it if it is not too large."""

    told: Upload
    sha256: str
    file: File[Any]


def storage() -> Storage:
    """Where they are: the alias of the setting UPLOAD_STORAGE."""
    return storages[conf.UPLOAD_STORAGE]


def measured(name: str, given: Any, most: int) -> Measured:
    """Read a file once, no further than `most` bytes and a little.

    Raises:
        PayloadError: it is no file of bytes.
    """
    file = given if isinstance(given, File) else File(given) if hasattr(given, "read") else None
    if file is None:
        raise PayloadError(f"the file {name}", f"must be a file that can be read, got {type(given).__name__}")
    digest, size = hashlib.sha256(), 0
    try:
        file.seek(0)
        while size <= most and (chunk := file.read(File.DEFAULT_CHUNK_SIZE)):
            if not isinstance(chunk, bytes):
                raise PayloadError(f"the file {name}", "has to be opened in binary mode")
            digest.update(chunk)
            size += len(chunk)
    except (AttributeError, OSError, ValueError) as fault:
        raise PayloadError(f"the file {name}", f"cannot be read from its beginning ({type(fault).__name__})") from fault
    claimed = getattr(file, "size", None) if size > most else None
    told = Upload(str(file.name or ""), max(size, claimed or 0), str(getattr(file, "content_type", "") or ""))
    return Measured(told, digest.hexdigest(), file)


def keep(request_id: int, given: Mapping[str, Measured]) -> dict[str, str]:
    """Store these files; the path of each. All of them or none."""
    kept: dict[str, str] = {}
    try:
        for name, one in given.items():
            one.file.seek(0)
            kept[name] = storage().save(f"{PLACE}/{request_id}/{uuid.uuid4().hex}", one.file)
    except BaseException:
        remove(kept.values())
        raise
    return kept


def remove(paths: Iterable[str]) -> None:
    """Remove files that no answer names. What cannot be removed now is logged, and found by `remove_unreferenced`."""
    for path in paths:
        try:
            storage().delete(path)
        except Exception:
            logger.exception("a file that no answer names could not be removed: %s", path)


def give_up(request_id: int, paths: Iterable[str], using: str) -> None:
    """Remove files after an exception: what broke may have come after the commit, so only those that no answer names."""
    wanted = list(paths)
    try:
        named = _named(request_id, using) if wanted else set()
    except Exception:
        logger.exception("files of request %s may be left without an answer; remove_unreferenced() finds them", request_id)
        return
    remove(path for path in wanted if path not in named)


def opened(path: str) -> File[Any]:
    """A file that was given."""
    return storage().open(path, "rb")


def remove_unreferenced(*, older_than: timedelta = timedelta(days=1), using: str | None = None) -> int:
    """Remove the files that no answer of this database names, as a crash leaves them; how many. What somebody else removes meanwhile is gone.

    Two databases that share a storage need a place of their own in it: to each, the files of the other are files that no answer names.

    Args:
        older_than: younger ones are left: their answer may be about to be committed.
    """
    alias, place, before = identify.alias(using), storage(), timezone.now() - older_than
    removed = 0
    try:
        requests = place.listdir(PLACE)[0]  # not whether it exists: a store of objects has no folders that do
    except FileNotFoundError:
        return 0
    for request in requests:
        named = _named(int(request), alias) if request.isdecimal() else set()
        for name in place.listdir(f"{PLACE}/{request}")[1]:
            path = f"{PLACE}/{request}/{name}"
            if path not in named and _is_older(path, before):
                place.delete(path)
                removed += 1
    return removed


def _is_older(path: str, moment: datetime) -> bool:
    """Whether the file is there, and was written before that moment."""
    try:
        return storage().get_modified_time(path) < moment
    except FileNotFoundError:
        return False


def _named(request_id: int, using: str) -> set[str]:
    """The paths that answers to this request name."""
    found = Review.objects.using(using).filter(request_id=request_id, values__isnull=False).values_list("values", flat=True)
    return _paths(found)


def leave(using: str, workflow_ids: Sequence[Any]) -> None:
    """The answers of these runs are about to go: their files go after the commit. After a crash just there, `remove_unreferenced` finds them."""
    found = Review.objects.using(using).filter(request__workflow_id__in=list(workflow_ids), values__isnull=False)
    paths: set[str] = set()
    for stored in found.values_list("values", flat=True):
        try:
            paths |= _paths([stored])
        except PayloadError:
            logger.exception("an answer cannot be opened: the files that it names are left to the look at what nobody names")
    if paths:
        transaction.on_commit(lambda: remove(sorted(paths)), using=using)


def _paths(stored: Iterable[Any]) -> set[str]:
    given = (found for values in stored if isinstance(found := payload.decode(values), Mapping))
    return {value["path"] for values in given for value in values.values() if isinstance(value, Mapping) and "path" in value}
