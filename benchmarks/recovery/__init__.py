"""How a dependency recovers with a backlog: rate, ceiling, what other work notices, and how soon a second failure stops it."""
