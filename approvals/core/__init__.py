"""Pure Python: what a request may become, whether an answer is for exactly it, and how a candidate is shown as data."""
