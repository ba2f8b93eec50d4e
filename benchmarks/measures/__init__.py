"""What measuring costs: an hour of a large log rolled up, and a look of a monitoring system."""
