"""What going on costs after a stop, in model tokens and calls of tools: `make resume`."""
