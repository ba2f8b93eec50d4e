"""Window: the moment at which a named calendar is open, for `Sleep(until=…)`."""

from __future__ import annotations

from dataclasses import dataclass

from flows.core import typed


@dataclass(frozen=True, slots=True)
class Window:
    """When a calendar is open: at once where it is, else as its next window opens.

    Args:
        calendar: the name of a published calendar (`flows.calendars.publish`).
    """

    calendar: str

    def __post_init__(self) -> None:
        typed.must("Window(…)", self.calendar, (str,), 'Window("office")')
