"""Whom a question is put to: a step of the ladder, and who is asked besides when nobody answers (F4, F5). Names only; who that is at the
moment of an answer is looked up by the human plane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from flows.core import canonical, payload, typed
from flows.core.errors import DefinitionError
from flows.core.nodes.activity import qualified
from flows.core.spans import span
from flows.core.state import State

#: So many people at most are asked by one step.
MAX_NEED = 50


@dataclass(frozen=True)
class Reviewers:
    """One step of a ladder: who may answer, and how many of them must approve.

    Args:
        role: a Django group. pool: a pool of reviewers. permission: "app.codename". to: pure function of the state that gives the user name of
            one person. At least one; who answers is in all that are named.
        need: how many people must approve here. when: pure function of the state: whether this step applies; default: always.
        name: what reviewers are shown; default: whom it asks.
    """

    role: str = ""
    pool: str = field(kw_only=True, default="")
    permission: str = field(kw_only=True, default="")
    to: Callable[[State], str] | None = field(kw_only=True, default=None)
    need: int = field(kw_only=True, default=1)
    when: Callable[[State], Any] | None = field(kw_only=True, default=None)
    name: str = field(kw_only=True, default="")

    def __post_init__(self) -> None:
        what = "Reviewers(…)"
        named(what, role=self.role, pool=self.pool, permission=self.permission)
        typed.must(f"{what[:-2]}need=…)", self.need, (int,), f"{what[:-2]}need=2)")
        if not 1 <= self.need <= MAX_NEED:
            raise DefinitionError(f"Reviewers(need={self.need!r}): how many people must approve, from 1 to {MAX_NEED}.")
        typed.must("Reviewers(name=…)", self.name, (str,), 'Reviewers("lawyers", name="Legal")')
        if not payload.is_text(self.name):
            raise DefinitionError(f"Reviewers(name={self.name!r:.80}) holds a NUL character or a lone surrogate.")
        if self.to is not None and self.need > 1:
            raise DefinitionError(f"Reviewers(to=…, need={self.need}): one person cannot answer {self.need} times.")

    @property
    def empty(self) -> bool:
        """Whether it names nobody."""
        return not (self.role or self.pool or self.permission or self.to)

    def frozen(self, state: State) -> dict[str, Any]:
        """As it is kept with a request that is made in this state.

        Raises:
            DefinitionError: `to` gives no name.
        """
        user: Any = self.to(state) if self.to is not None else ""
        if self.to is not None and not payload.is_name(user):
            raise DefinitionError(f"{qualified(self.to)} has to give the user name of a person; it gave {user!r:.80}.")
        audience = written(self.role, self.pool, self.permission, user)
        return {"name": self.name or in_words(audience), "need": self.need, "audience": audience}

    @property
    def shape(self) -> dict[str, Any]:
        """What of it makes another question; of functions their names and not their code."""
        return {
            "name": self.name,
            "need": self.need,
            "audience": written(self.role, self.pool, self.permission, qualified(self.to) if self.to is not None else ""),
            "when": qualified(self.when) if self.when is not None else "",
        }


@dataclass(frozen=True)
class Escalation:
    """Who may answer too, once nobody has for so long; nothing is ever approved by it.

    Args:
        days, hours, minutes, seconds: the span from the moment the request was made. role, pool, permission: as in `Reviewers`.
    """

    role: str = ""
    pool: str = field(kw_only=True, default="")
    permission: str = field(kw_only=True, default="")
    days: float = field(kw_only=True, default=0)
    hours: float = field(kw_only=True, default=0)
    minutes: float = field(kw_only=True, default=0)
    seconds: float = field(kw_only=True, default=0)

    def __post_init__(self) -> None:
        named("Escalation(…)", role=self.role, pool=self.pool, permission=self.permission)
        if not (self.role or self.pool or self.permission):
            raise DefinitionError('An Escalation names who may answer then: Escalation("managers", hours=4).')
        if self.after <= timedelta(0):
            raise DefinitionError('An Escalation needs a span: Escalation("managers", hours=4).')

    @property
    def after(self) -> timedelta:
        """The span from the moment the request was made."""
        return span("Escalation(…)", days=self.days, hours=self.hours, minutes=self.minutes, seconds=self.seconds)

    @property
    def frozen(self) -> dict[str, Any]:
        """As it is kept with a request."""
        return {"after": self.after.total_seconds(), "audience": written(self.role, self.pool, self.permission)}


def named(what: str, *, role: Any, pool: Any, permission: Any) -> None:
    """Check the names of an audience.

    Raises:
        DefinitionError: one is no text, or the permission none of Django's.
    """
    for name, value in (("role", role), ("pool", pool), ("permission", permission)):
        typed.must(f"{what[:-2]}{name}=…)", value, (str,), f'{what[:-2]}{name}="…")')
        if not payload.is_text(value):
            raise DefinitionError(f"{what[:-2]}{name}={value!r:.80}) holds a NUL character or a lone surrogate.")
    app, dot, codename = permission.partition(".")
    if permission and not (app and dot and codename):
        raise DefinitionError(f'{what[:-2]}permission={permission!r}): a permission is written "app_label.codename".')


def written(role: str, pool: str, permission: str, user: str = "") -> dict[str, str]:
    """An audience as it is kept: what is named, and nothing else."""
    return {key: value for key, value in (("role", role), ("pool", pool), ("permission", permission), ("user", user)) if value}


def ladder_digest(steps: Sequence[Reviewers], escalation: Sequence[Escalation], node: str) -> str:
    """What tells one ladder from another: the steps and the escalation, as declared."""
    asks = {"steps": [step.shape for step in steps], "escalation": [one.frozen for one in escalation]}
    return canonical.digest(asks, f"the steps of {node}")


def seconds_of(moments: Sequence[timedelta]) -> list[float]:
    """Moments after a request was made, as they are kept with it."""
    return [moment.total_seconds() for moment in moments]


def in_words(audience: dict[str, str]) -> str:
    """Whom an audience names, for a person."""
    forms = {"role": "{}", "pool": "pool {}", "permission": "{}", "user": "{}"}
    return " and ".join(forms[key].format(audience[key]) for key in forms if key in audience)


__all__ = ["Escalation", "Reviewers", "in_words", "ladder_digest", "seconds_of", "written"]
