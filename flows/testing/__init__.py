"""A kit for tests: a worker inside the test's own process, a clock that can be moved, and a lapse of time with whatever workers there are.

with movable_clock() as clock, local_worker() as worker:
    run = MyFlow.start({...})
    worker.run()                    # until nothing is ready
    clock.move(hours=3)
    worker.tick(); worker.run()

with timelapse() as lapse:          # real workers, in processes of their own
    run = MyFlow.start({...})
    lapse.until(run, node="ask")
    lapse.by(days=2)

The clock is that of the whole database, so it is moved only where the database's name begins with `test_`.
"""

from flows.testing.clock import Clock, NotATestDatabase, movable_clock
from flows.testing.lapse import NotThere, TimeLapse, timelapse
from flows.testing.worker import LocalWorker, local_worker

__all__ = ["Clock", "LocalWorker", "NotATestDatabase", "NotThere", "TimeLapse", "local_worker", "movable_clock", "timelapse"]
