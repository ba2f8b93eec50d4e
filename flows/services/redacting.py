"""What is shown of stored values, and to whom: fields that REDACT names are hidden from everybody who lacks the permission `see_redacted`.

Pages, the API and commands say who looks (`looks`); as long as nobody has said so, nobody sees. What code reads is not redacted: flows work on
their values, and `flows.describe` is code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.core.signals import request_finished, request_started

from flows.conf import conf
from flows.core import payload, redaction
from flows.core.errors import PayloadError
from flows.core.redaction import Path

PERMISSION = "outlast_flows.see_redacted"

_viewer: ContextVar[Any] = ContextVar("outlast_viewer", default=None)


def looks(user: Any) -> None:
    """From now on, and until the end of the request, this user looks; None: nobody who is known."""
    _viewer.set(user)


@contextmanager
def looking(user: Any) -> Iterator[None]:
    """Within this, that user looks: of what is no request, and may be called by one."""
    before = _viewer.set(user)
    try:
        yield
    finally:
        _viewer.reset(before)


def _forget(**_: object) -> None:
    _viewer.set(None)


request_started.connect(_forget, dispatch_uid="outlast-viewer-started")
request_finished.connect(_forget, dispatch_uid="outlast-viewer-finished")


def hidden_from(user: Any) -> tuple[Path, ...]:
    """The paths that are hidden from this user; none where the setting names none."""
    if not conf.REDACT:
        return ()
    sees = user is not None and bool(getattr(user, "is_active", False)) and user.has_perm(PERMISSION)
    return () if sees else redaction.paths(conf.REDACT)


def hides(kind: str) -> bool:
    """Whether anything of such a value is hidden from who looks now: for what is shown as it came, in a form that has no fields."""
    return any(first in (redaction.ANY, kind) for first, *_ in hidden_from(_viewer.get()))


def shown(kind: str, stored: Any, *, user: Any = None) -> Any:
    """The value behind a stored one, as it is shown to who looks now (or to `user`); what cannot be opened is shown as it lies there."""
    try:
        value = payload.decode(stored)
    except PayloadError:
        value = stored
    return value if value is None else redaction.hide(kind, value, hidden_from(user or _viewer.get()))


def record(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """An opened record of an archived run, as it is shown to who looks now; the kinds are its columns."""
    hidden = hidden_from(_viewer.get())
    if not hidden:
        return found
    return {
        table: [
            {name: redaction.hide(name, item, hidden) if name in redaction.KINDS else item for name, item in row.items()}
            for row in rows
        ]
        for table, rows in found.items()
    }
