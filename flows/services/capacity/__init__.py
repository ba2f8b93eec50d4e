"""Capacity: what attempts take before they begin, how they wait for it, and who lets them in again (`pump`)."""
