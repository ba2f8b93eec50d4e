"""The one way to answer what an Ask asks: the admin, another channel, a command and a test all call this.

    read the form ──► check what was given ──► judge, without locks: is it worth anything?
                                                   ├─ taken, with faults ──► said by field; nothing is written
                                                   ├─ taken ──► files into storage ──► taken under the locks (`taking`) ──► wake
                                                   └─ refused ──► refused under the locks, and recorded
No file is stored while a lock is held. One that was stored for an answer that is refused, or rolled back here, is removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _

from approvals.core.binding import UNSHOWN, Refusal, Shown, judge
from approvals.core.status import ANSWER, RequestKind, RequestStatus
from approvals.models import Request
from approvals.services import people, uploads
from approvals.services.facts import digest_of, request_facts
from approvals.services.locked import UnknownRequest, locked, request_id_of
from approvals.services.notices import owing
from approvals.services.taking import ACCEPTED, Given, NobodyAnswers, clean, code_of, facts_of, noted, take, wake
from approvals.services.uploads import Measured
from approvals.store import requests as store
from flows.conf import conf
from flows.core import fields, payload
from flows.core.errors import HalfMove, PayloadError
from flows.core.fields import Fault, Upload
from flows.services import identify
from flows.store.sql import committing

INVALID = "ANSWER_INVALID"
MAX_TRIES = 5

#: Bytes that the path of a stored file may add to an answer.
PATH_BYTES = 500


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of an answer: "accepted", "already" (the same again), ANSWER_INVALID with `errors` by field, or the code of a refusal.

    `errors`: field → sentences; those of the whole form stand under "".
    """

    code: str
    sentence: str
    request_id: int
    errors: Mapping[str, list[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.code == ACCEPTED


class _Changed(Exception):
    """Roll back and look again: it would be taken now, and was not made ready for that."""


def answer(
    request: Any,
    *,
    values: Mapping[str, Any] | None = None,
    files: Mapping[str, Any] | None = None,
    digest: str,
    by: Any,
    shown: Shown = UNSHOWN,
    using: str | None = None,
) -> Answered:
    """Answer an Ask, atomic with the caller's transaction. What was answered stands; the same again changes nothing.

    Args:
        request: the request or its id. values: field → value, of the type that the field says; a date and a decimal may be text.
        files: field → an open file in binary mode, or a Django `File`. digest: of the form that `by` has filled in.
        by: the user who answers; rights are looked up anew. shown: as for `decide`.
    Raises:
        UnknownRequest, NobodyAnswers: the call makes no sense. PayloadError: values are no mapping, or a file is none.
    """
    alias = identify.alias(using)
    request_id = request_id_of(request)
    identify.user(by, NobodyAnswers)
    seen = clean("the digest", digest, 200)
    values, files = _mapping("values", values), _mapping("files", files)
    if both := [name for name in values if name in files]:
        raise PayloadError("the answer", f"gives {both[0]!r:.60} among the values and among the files")
    row = Request.objects.using(alias).select_related("workflow").filter(pk=request_id).first()
    if row is None:
        raise UnknownRequest(request_id)
    form = form_of(row)
    asked = fields.names(form, "file")
    read = {name: uploads.measured(name, file, conf.MAX_UPLOAD_BYTES) for name, file in files.items() if name in asked}
    told = {**values, **dict.fromkeys(files, Upload("", 0)), **{name: one.told for name, one in read.items()}}
    found, faults = fields.check(form, told, max_file=conf.MAX_UPLOAD_BYTES)
    for name, one in read.items():
        if isinstance(found.get(name), dict):
            found[name]["sha256"] = one.sha256
    if not faults and (fault := _too_large(found, len(read))):
        faults = {"": [fault]}
    for _attempt in range(MAX_TRIES):
        given = Given(ANSWER, seen, "", people.current(by, alias), identify.label(by), {} if faults else found, shown)
        try:
            return _answered(row, given, faults, read, alias)
        except _Changed:
            continue
    raise HalfMove(f"request {request_id} was shut and open again {MAX_TRIES} times in one answer; nothing was changed")


def form_of(row: Request) -> list[dict[str, Any]]:
    """The fields of a request, as they were asked; none of what is no form."""
    found: list[dict[str, Any]] = body_of(row)["fields"]
    return found


def body_of(row: Request) -> Mapping[str, Any]:
    """What is asked: "why" and "fields". Nothing of what is no form, or was altered behind the record: that may be of any shape."""
    if row.kind != RequestKind.ASK or digest_of(row.candidate) != row.digest:
        return {"why": "", "fields": []}
    found: Mapping[str, Any] = payload.decode(row.candidate)["value"]
    return found


def _mapping(name: str, given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise PayloadError(name, f"must be a mapping of field → value, got {type(given).__name__}")
    return given


def _too_large(found: Mapping[str, Any], files: int) -> Fault | None:
    try:
        payload.text(found, "the answer", conf.MAX_PAYLOAD_BYTES - PATH_BYTES * (files + 1))
    except PayloadError:
        template = _marked("All of it together is too much: at most %(most)s bytes are kept. Give a file instead.")
        return Fault(template, {"most": f"{conf.MAX_PAYLOAD_BYTES:,}"})
    return None


def _answered(
    row: Request, given: Given, faults: Mapping[str, list[Fault]], read: Mapping[str, Measured], using: str
) -> Answered:
    known = request_facts(row.pk, using)
    if known is None:
        raise UnknownRequest(row.pk)
    ready = judge(known, facts_of(given, row)) is None
    if ready and faults:
        errors = {name: [_(one.template) % one.params for one in several] for name, several in faults.items()}
        noted(row, given, INVALID)
        return Answered(INVALID, _("Nothing was sent: correct what is marked."), row.pk, errors)
    kept = uploads.keep(row.pk, read) if ready else {}
    refusal: Refusal | None = None
    try:
        given = _with_paths(given, kept)
        with committing("answer ask", using):
            row = locked(row.pk, using)
            refusal, done = take(row, given, lambda _recorded: _write(row, given, using, ready=ready), using)
            if done:
                owing.decided(row.pk, using)
                evidence = {"answer": given.values, "by": given.label, "request": str(row.pk)}
                wake(row, evidence, "answer", using)
    except BaseException:
        uploads.give_up(row.pk, kept.values(), using)
        raise
    if refusal is not None:
        uploads.remove(kept.values())
    code = code_of(refusal)
    noted(row, given, code)
    if refusal is not None:
        return Answered(code, _(refusal.template) % refusal.params, row.pk)
    return Answered(code, _("Your answer was handed to the workflow. It approves nothing."), row.pk)


def _with_paths(given: Given, kept: Mapping[str, str]) -> Given:
    values = given.values or {}
    named = {name: {**values[name], "path": path} for name, path in kept.items()}
    return replace(given, values={**values, **named})


def _write(row: Request, given: Given, using: str, *, ready: bool) -> bool | None:
    if not ready:
        raise _Changed
    written = store.answer(row.pk, status=RequestStatus.ANSWERED, answer=given.answer, digest=given.digest, using=using)
    return written or None


def _marked(text: str) -> str:
    """Marks a text for `makemessages`; it is translated where it is told."""
    return text
