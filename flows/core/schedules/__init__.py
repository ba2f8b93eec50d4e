"""Schedules: what starts which flow, when. Declared in `<app>/flows.py` beside the flows, or made in the admin; this is the pure part.

Nouns: a `Spec` (when) is read into a `Plan` (moments); `missed` says what becomes of moments that have come, `overlap` what becomes of one whose
predecessor still runs. The rows, and the arrows between their statuses, are `flows.store.schedules` and `flows.store.occurrences`.
"""
