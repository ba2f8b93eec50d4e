"""Webhooks that come in, as far as they are pure: schemes of signing, and what a delivery means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flows.core.hooks.generic import Hmac
from flows.core.hooks.mapping import Delivery, Mapped
from flows.core.hooks.schemes import InvalidSource, Refused, Scheme, Verified, option_names
from flows.core.hooks.standard import Standard
from flows.core.hooks.vendors import GitHub, Slack, Stripe

#: name → scheme.
SCHEMES: dict[str, type[Scheme]] = {kind.name: kind for kind in (Standard, GitHub, Stripe, Slack, Hmac)}


def scheme(name: object, options: object) -> Scheme:
    """The scheme of that name, with its options.

    Raises:
        InvalidSource: there is no such scheme, or an option that it does not take or that cannot be.
    """
    kind = SCHEMES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidSource("source", f"there is no scheme {name!r:.60}; there are {', '.join(SCHEMES)}")
    if not isinstance(options, Mapping):
        raise InvalidSource("source", f"the options are an object (a dict), not {type(options).__name__}")
    unknown = sorted(str(option) for option in options if option not in kind.takes)
    if unknown:
        takes = ", ".join(option_names(kind)) or "none"
        raise InvalidSource("source", f"the scheme {name} takes no option {', '.join(unknown)[:120]}; it takes {takes}")
    given: dict[str, Any] = dict(options)
    return kind(**given)


__all__ = ["SCHEMES", "Delivery", "Hmac", "InvalidSource", "Mapped", "Refused", "Scheme", "Verified", "option_names", "scheme"]
