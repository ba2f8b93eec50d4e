"""How fast the operator's screens are, with a million runs, and of a run with five thousand arrows."""
