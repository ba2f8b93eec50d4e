"""A tracer provider that remembers its spans: the interface of OpenTelemetry, without its SDK."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags


class Remembered(NonRecordingSpan):
    """One span, as it was made and what it was told."""

    def __init__(self, name: str, parent: SpanContext | None, links: Any, attributes: Any) -> None:
        trace_id = parent.trace_id if parent is not None else random.getrandbits(128)
        super().__init__(SpanContext(trace_id, random.getrandbits(64), is_remote=False, trace_flags=TraceFlags(1)))
        self.name, self.parent, self.links = name, parent, [link.context for link in links or ()]
        self.attributes: dict[str, Any] = dict(attributes or {})
        self.status, self.ended = "", False

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = status.description

    def end(self, end_time: int | None = None) -> None:
        self.ended = True

    def record_exception(self, *args: Any, **kwargs: Any) -> None:
        message = "an error's message may hold anything"
        raise AssertionError(message)


class Tracer(trace.Tracer):
    """Makes them."""

    def __init__(self) -> None:
        self.spans: list[Remembered] = []

    def start_span(self, name: str, context: Any = None, kind: Any = None, attributes: Any = None, links: Any = None,
                   **_: Any) -> Remembered:  # fmt: skip
        found = trace.get_current_span(context).get_span_context()
        span = Remembered(name, found if found.is_valid else None, links, attributes)
        self.spans.append(span)
        return span

    @contextmanager
    def start_as_current_span(self, name: str, context: Any = None, **options: Any) -> Iterator[Remembered]:  # type: ignore[override]
        further = {key: options.get(key) for key in ("kind", "attributes", "links")}
        span = self.start_span(name, context, **further)
        kept = {key: options[key] for key in ("record_exception", "set_status_on_exception") if key in options}
        with trace.use_span(span, end_on_exit=True, **kept):
            yield span


class Provider(trace.TracerProvider):
    """Gives one tracer."""

    def __init__(self) -> None:
        self.tracer = Tracer()

    def get_tracer(self, *args: Any, **kwargs: Any) -> Tracer:
        return self.tracer

    @property
    def spans(self) -> list[Remembered]:
        return self.tracer.spans
