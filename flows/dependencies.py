"""What is outside and may be down: how it is, and what people and code say of it.

from flows import dependencies

dependencies.report("payments", ok=False)    # code outside a run has met its want of capacity
dependencies.down("payments", by=user, reason="Maintenance until four")    # a user needs outlast_flows.operate_dependency, and a reason
dependencies.up("payments", by=user, reason="They are back")
dependencies.set_rate("payments", rate=50, ceiling=10, by=user, reason="They asked for less")
dependencies.show("payments").drain_seconds
"""

from flows.services.capacity.health import Shown, down, report, set_rate, show, up

__all__ = ["Shown", "down", "report", "set_rate", "show", "up"]
