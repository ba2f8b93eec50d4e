"""Named calendars: business hours, holidays, windows. Each is a record with versions; the newest counts.

from flows import calendars

calendars.publish(
    "office",
    {"zone": "Europe/Vienna", "week": {"mon": ["09:00-17:00"], "tue": ["09:00-17:00"]}, "holidays": ["12-25", "2027-03-29"]},
)
"""

from flows.services.calendars import CalendarMoved, PublishedCalendar, publish

__all__ = ["CalendarMoved", "PublishedCalendar", "publish"]
