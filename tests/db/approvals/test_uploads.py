"""Files that are given as answers: kept once, named by the answer, and gone where no answer names them."""

from __future__ import annotations

import hashlib
import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage, default_storage

from approvals.api import remove_unreferenced
from approvals.models import Request, Review
from approvals.services import uploads
from flows.core.errors import PayloadError
from tests.support.approving import World
from tests.support.filling import OrderParts, file, fill, fill_and_roll_back

pytestmark = pytest.mark.req("C6")

NOW = timedelta(0)


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def kept(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def asked(world: World) -> Request:
    return world.ask(flow=OrderParts)


def test_a_file_is_kept_under_a_name_of_ours_and_described_by_the_answer(world: World, folder: Path) -> None:
    request = asked(world)
    content = b"\x00binary\xff"
    assert fill(world, request, files={"contract": file(content, "../../a <b>.pdf")})
    given = Review.objects.get().values["contract"]
    (path,) = kept(folder)
    assert given == {
        "name": "a <b>.pdf",
        "size": len(content),
        "content_type": "application/octet-stream",
        "sha256": hashlib.sha256(content).hexdigest(),
        "path": str(path.relative_to(folder)),
    }
    assert path.read_bytes() == content
    assert path.parent == folder / "outlast" / "answers" / str(request.pk)
    assert "pdf" not in path.name
    world.worker.run()
    assert world.workflow(request).result["asked"]["answer"]["contract"] == given
    with default_storage.open(given["path"]) as opened:
        assert opened.read() == content


def test_the_setting_says_where_they_are(world: World, folder: Path, settings: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "private": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": folder / "private"}},
    }
    settings.OUTLAST = {**getattr(settings, "OUTLAST", {}), "UPLOAD_STORAGE": "private"}
    assert fill(world, asked(world), files={"contract": file()})
    (path,) = kept(folder)
    assert path.is_relative_to(folder / "private")


def test_the_file_of_an_answer_that_is_refused_is_not_left(world: World, folder: Path) -> None:
    request = asked(world)
    assert fill(world, request, by=world.sue, files={"contract": file()}).code == "NOT_ASKED"
    assert fill(world, request, title="", files={"contract": file()}).code == "ANSWER_INVALID"
    assert fill(world, request, digest="sha256:0", files={"contract": file()}).code == "STALE_CANDIDATE"
    assert kept(folder) == []
    assert fill(world, request, files={"contract": file()})
    assert fill(world, request, files={"contract": file()}).code == "already", "the same file again is the same answer"
    assert fill(world, request, files={"contract": file(b"other")}).code == "ANSWERED_BEFORE"
    assert fill(world, request, by=world.ron, files={"contract": file()}).code == "ANSWERED_BEFORE"
    assert len(kept(folder)) == 1


def test_who_may_answer_only_by_the_time_the_locks_are_held_is_looked_at_again(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asked(world)
    looked: list[int] = []
    real = world.rita.groups.get()
    world.rita.groups.clear()

    from approvals.services import answering

    committing = answering.committing

    def joins(name: str, using: str) -> Any:
        """She is taken into the role between the look without locks and the one under them."""
        looked.append(1)
        world.rita.groups.add(real)
        return committing(name, using)

    monkeypatch.setattr(answering, "committing", joins)
    assert fill(world, request, files={"contract": file()})
    assert (len(looked), len(kept(folder))) == (2, 1)


def test_who_may_no_longer_under_the_locks_leaves_no_file(world: World, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked(world)

    def leaves(*args: Any, **kwargs: Any) -> Any:
        world.rita.groups.clear()
        return row(*args, **kwargs)

    from approvals.services import answering

    row = answering.locked
    monkeypatch.setattr(answering, "locked", leaves)
    assert fill(world, request, files={"contract": file()}).code == "NOT_ASKED"
    assert (world.refusals(request), kept(folder)) == (["NOT_ASKED"], [])


def test_what_breaks_before_the_commit_leaves_no_file_and_after_it_the_answers_own(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asked(world)
    from approvals.services import answering

    def breaks(*args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(answering, "wake", breaks)
        with pytest.raises(ZeroDivisionError):
            fill(world, request, files={"contract": file()})
    assert (world.status(request), kept(folder)) == ("pending", [])
    from flows.store import sql

    with monkeypatch.context() as patched:
        patched.setattr(sql, "seam", lambda when, name: breaks() if (when, name) == ("after", "answer ask") else None)
        with pytest.raises(ZeroDivisionError):
            fill(world, request, files={"contract": file()})
    assert world.status(request) == "answered"
    assert [str(path.relative_to(folder)) for path in kept(folder)] == [Review.objects.get().values["contract"]["path"]]


def test_storage_that_fails_leaves_the_question_open(world: World, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked(world)
    monkeypatch.setattr(FileSystemStorage, "save", lambda *args, **kwargs: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        fill(world, request, files={"contract": file()})
    assert (world.status(request), Review.objects.count()) == ("pending", 0)


def test_a_file_that_could_not_be_removed_is_found_later(world: World, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked(world)
    with monkeypatch.context() as patched:
        patched.setattr(FileSystemStorage, "delete", lambda *args: (_ for _ in ()).throw(OSError("no")))
        uploads.remove(uploads.keep(request.pk, {"contract": uploads.measured("contract", file(), 100)}).values())
    with pytest.raises(ZeroDivisionError):
        fill_and_roll_back(world, request, files={"contract": file()})
    assert fill(world, request, files={"contract": file()})
    named = folder / Review.objects.get().values["contract"]["path"]
    assert len(kept(folder)) == 3
    assert remove_unreferenced() == 0, "they are young: somebody may be about to commit"
    assert remove_unreferenced(older_than=NOW) == 2
    assert kept(folder) == [named]
    assert remove_unreferenced(older_than=NOW) == 0


def test_nothing_to_remove_where_nothing_was_given(folder: Path, db: None) -> None:
    assert remove_unreferenced(older_than=NOW) == 0


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (file(b""), "This file is empty."),
        (file(b"x" * 2001), "This file has 2,001 bytes; at most 2,000 are taken."),
        (file(b"x" * 10_000_000), "This file has 10,000,000 bytes; at most 2,000 are taken."),
        (file(name="a" * 300), "A file has a name, of at most 255 characters."),
        (file(name="\x00.pdf"), "A file has a name, of at most 255 characters."),
        (io.BytesIO(b"x"), "A file has a name, of at most 255 characters."),
    ],
    ids=["empty", "too large", "ten megabytes", "long name", "NUL", "no name"],
)
def test_what_is_wrong_with_a_file_is_said_beside_it(world: World, folder: Path, given: Any, fault: str) -> None:
    told = fill(world, asked(world), files={"contract": given})
    assert (told.code, told.errors) == ("ANSWER_INVALID", {"contract": [fault]})
    assert kept(folder) == []


def test_no_more_of_it_is_read_than_may_be_kept(settings: Any) -> None:
    class Endless(io.BytesIO):
        read_so_far = 0

        def read(self, size: int | None = -1) -> bytes:
            assert size is not None and size > 0
            self.read_so_far += size
            return b"x" * size

    endless = Endless()
    assert uploads.measured("contract", endless, 100_000).told.size > 100_000
    assert endless.read_so_far < 400_000


class Closed(io.BytesIO):
    def seek(self, *args: Any) -> int:
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize(("given", "told"), [(io.StringIO("text"), "binary"), (Closed(), "from its beginning"), (5, "got int")])
def test_what_cannot_be_read_is_no_file(world: World, given: Any, told: str) -> None:
    with pytest.raises(PayloadError, match=told):
        fill(world, asked(world), files={"contract": given})
