"""The pure room: what comes next is a function of (definition, recorded state, trigger).

No Django, no clock, no randomness, no I/O lives here; `now` and random numbers are arguments.
"""
