"""Who may do what, within which envelope, and where: the defaults behind OUTLAST["AUTHORITY"], ["COMPETENCE"] and ["PLACEMENT"].

A provider is called when an attempt looks, outside any transaction, and may do I/O. It answers "" (granted) or the reason of its denial, which
people read; what it raises is a failed attempt, never a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model

from flows import registry
from flows.conf import conf
from flows.store import gate


@dataclass(frozen=True, slots=True)
class Run:
    """The workflow that a provider is asked about. `user_id`: of the accountable user; `subject`: what the run is about."""

    id: UUID
    flow: str
    key: str | None
    node: str
    user_id: Any
    release: str
    using: str


def authority(run: Run, permission: str) -> str:
    """Whether the accountable user has a Django permission now (`app.codename`); their present rights, not those of the start."""
    if run.user_id is None:
        return "nobody is accountable for this run"
    user = get_user_model()._default_manager.using(run.using).filter(pk=run.user_id).first()  # noqa: SLF001
    if user is None:
        return "the accountable user does not exist any more"
    if not user.is_active:
        return "the accountable user is not active"
    return "" if user.has_perm(permission) else "the accountable user has no such permission"


def competence(run: Run, of: str, errors: int) -> str:
    """Whether the envelope of a node is open: under this release no more verifications of its candidates failed than is declared now."""
    burned = gate.burned(run.flow, of, run.release, errors, run.using)
    if burned <= errors:
        return ""
    return f"{burned} verifications of {of} failed, {errors} may: the envelope is closed"


def placement(run: Run, wanted: Sequence[str], offered: Sequence[str]) -> str:  # noqa: ARG001 - one that knows the subject needs it
    """Whether the worker offers one of the labels that the gate names."""
    if set(wanted) & set(offered):
        return ""
    return f"wanted is {' or '.join(wanted)}; this worker offers {', '.join(offered) or 'no label'}"


def provider(setting: str) -> Callable[..., str]:
    """The provider behind a setting.

    Raises:
        DefinitionError: the dotted path leads nowhere.
    """
    return registry.function(getattr(conf, setting))
