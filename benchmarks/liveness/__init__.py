"""How long the scan for orphans takes over a record of a million runs."""
