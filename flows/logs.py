"""Logs with ids: what this process is working on, in every record that it logs meanwhile, also in those of the author's code.

LOGGING = {
    "filters": {"ids": {"()": "flows.logs.Ids"}},
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s [%(flow)s.%(node)s %(workflow)s #%(attempt)s] %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "filters": ["ids"], "formatter": "line"}},
    "root": {"handlers": ["console"]},
}
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

#: What a record gets, and what stands there while nothing is worked on.
FIELDS = ("flow", "workflow", "node", "attempt")
NOTHING = "-"

_working: ContextVar[Mapping[str, object]] = ContextVar("outlast_working_on", default={})  # noqa: B039 - never changed in place


@contextmanager
def working_on(**ids: object) -> Iterator[None]:
    """What is logged until the end of this is about these; inner ones add to outer ones."""
    token = _working.set({**_working.get(), **ids})
    try:
        yield
    finally:
        _working.reset(token)


class Ids(logging.Filter):
    """Adds `flow`, `workflow`, `node` and `attempt` to each record (`-` where there is none); what a record has of them already stays."""

    def filter(self, record: logging.LogRecord) -> bool:
        ids = _working.get()
        for name in FIELDS:
            if not hasattr(record, name):
                setattr(record, name, ids.get(name, NOTHING))
        return True
