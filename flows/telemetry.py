"""Traces for OpenTelemetry, where `opentelemetry-api` is installed and the process has a tracer provider; else nothing at all happens here.

    start    the span that is active when a run is started is kept with the run (`traceparent`, in the note of its first row of the log)
    turn     one trace for each turn of a run, linked to the starter: a run may live for weeks, no trace should
    attempt  a span below it for each attempt; the author's own spans come below that one
Replay runs no turn and no attempt, so nothing of it is traced. Spans carry names, ids and codes, never inputs, results or messages of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

trace: Any = None  # without the extra there are no traces
with suppress(ImportError):
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

TRACEPARENT = "traceparent"
NAME = "outlast"


def tracer() -> Any:
    """The tracer; None where nobody would see what it traces."""
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return provider.get_tracer(NAME)


def current() -> str:
    """The active span as a traceparent (W3C); "": there is none."""
    if trace is None or not trace.get_current_span().get_span_context().is_valid:
        return ""
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(TRACEPARENT, "")


@contextmanager
def turn(name: str, facts: Mapping[str, str | int], started_by: Callable[[], str]) -> Iterator[None]:
    """A trace of its own for one turn of a run.

    Args:
        name: of the span. facts: its attributes. started_by: gives the traceparent of the starter, or ""; asked only if somebody traces.
    """
    found = tracer()
    if found is None:
        yield
        return
    with found.start_as_current_span(
        name, context=Context(), kind=trace.SpanKind.CONSUMER, attributes=_named(facts), links=_links(started_by())
    ):
        yield


@contextmanager
def attempt(name: str, facts: Mapping[str, str | int]) -> Iterator[Callable[[str, str | None], None]]:
    """A span for one attempt; what it gives is called with how the attempt ended, and the code if it failed."""
    found = tracer()
    if found is None:
        yield _untold
        return
    # What is raised here is no error of the author's code (that became an ending): the work is lost, or this process ends.
    with found.start_as_current_span(
        name, attributes=_named(facts), record_exception=False, set_status_on_exception=False
    ) as span:

        def ended(outcome: str, code: str | None) -> None:
            span.set_attribute("outlast.outcome", outcome)
            if code:
                span.set_attribute("outlast.code", code)
                span.set_status(trace.Status(trace.StatusCode.ERROR, code))

        yield ended


def _untold(_outcome: str, _code: str | None) -> None:
    return


def _named(facts: Mapping[str, str | int]) -> dict[str, str | int]:
    return {f"outlast.{name}": value for name, value in facts.items()}


def _links(traceparent: str) -> list[Any]:
    """The link to whoever started the run; none where what is on record is no traceparent."""
    context = TraceContextTextMapPropagator().extract({TRACEPARENT: traceparent}, context=Context())
    found = trace.get_current_span(context).get_span_context()
    return [trace.Link(found)] if found.is_valid else []
