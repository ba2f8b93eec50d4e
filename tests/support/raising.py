"""A module that cannot be imported."""

raise RuntimeError("raised while it was imported")
