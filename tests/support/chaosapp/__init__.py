"""A flows app whose activities leave a line per call and per effect, so that a test can count what happened outside the database."""
