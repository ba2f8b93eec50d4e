"""How the record grows, what vacuum makes of it, and how fast it is deleted again: `make growth`."""
