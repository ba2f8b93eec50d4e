"""A page of memory that a worker's processes share: the incarnation and its lease, and what each child is doing.

The parent makes it before it forks. It writes the head; each child writes only its own slot; readers copy. Times are CLOCK_BOOTTIME, which
goes on while the machine sleeps, so a lease that ran out is seen as run out.

    head   sequence (uint32: odd while the head is being written) · incarnation (16 bytes) · lease until (double); apart, a byte each: stopping,
           nothing was held at the last renewal
    slot   number (int32, see `own_number`) · activity started (double) · deadline (double) · claimed, not started (int32) · workflow (16 bytes)
    turns  one byte a slot: an agent turn runs there
"""

from __future__ import annotations

import fcntl
import mmap
import multiprocessing
import os
import struct
import tempfile
import threading
import time
import uuid
import weakref
from dataclasses import dataclass
from pathlib import Path

_HEAD = struct.Struct("=I16sd")
_STOPPING = _HEAD.size  # a byte of its own: it is set by a signal handler, while the keeper may be writing the head
_FREE = _STOPPING + 1  # nothing is held; 0 until a renewal has said so
_SLOT = struct.Struct("=iddi16s")
_SLOTS = 256
_FIRST = 64
_TURNS = _FIRST + _SLOT.size * _SLOTS
_NOBODY = b"\0" * 16

#: In a slot's `unstarted`: the process may own rows that it does not work on, and has been in doubt since `started`.
DOUBTFUL = -1
#: In a slot's `unstarted`: the process has no work and waits a moment for a hint.
LINGERING = -2


def boottime() -> float:
    """Seconds on a clock that nobody sets and that does not stop."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def own_number() -> int:
    """Who runs a turn within its worker: the process's number, or under threads the thread's (Linux numbers both together)."""
    if threading.current_thread() is threading.main_thread():
        return os.getpid()
    return threading.get_native_id() & 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class Slot:
    """What one process (or thread) of the worker is doing. `deadline` 0: no attempt runs."""

    index: int
    pid: int
    started: float
    deadline: float
    unstarted: int
    workflow: uuid.UUID | None


class Shared:
    """The page. One per worker; made before the pool forks."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _TURNS + _SLOTS)
        self._lock = multiprocessing.get_context("fork").Lock()
        # A record lock is given up by a process that dies; between threads of one process it does nothing.
        self._file, path = tempfile.mkstemp(prefix="outlast-")
        Path(path).unlink()
        weakref.finalize(self, os.close, self._file)
        self._among_threads = threading.Lock()
        self._sequence = 0

    def set_head(self, incarnation: uuid.UUID | None, lease_until: float) -> None:
        """The parent: who owns, and until when by this host's clock."""
        raw = incarnation.bytes if incarnation else _NOBODY
        self._sequence += 1
        _HEAD.pack_into(self._page, 0, self._sequence * 2 - 1, raw, lease_until)
        _HEAD.pack_into(self._page, 0, self._sequence * 2, raw, lease_until)

    def set_stopping(self) -> None:
        """The parent: the worker was asked to stop. There is no way back."""
        self._page[_STOPPING] = 1

    def stopping(self) -> bool:
        """Whether the worker was asked to stop."""
        return bool(self._page[_STOPPING])

    def set_holds(self, *, any_open: bool) -> None:
        """The parent: whether anything was held when it last renewed."""
        self._page[_FREE] = not any_open

    def holds(self) -> bool:
        """Whether something may be held, as of the last renewal."""
        return not self._page[_FREE]

    def head(self) -> tuple[uuid.UUID | None, float]:
        """(incarnation, lease until), read whole. Nobody owns where the writer has died half-way."""
        for _ in range(1000):
            before, raw, until = _HEAD.unpack_from(self._page, 0)
            again = _HEAD.unpack_from(self._page, 0)
            if before % 2 == 0 and again == (before, raw, until):
                return (None if raw == _NOBODY else uuid.UUID(bytes=raw)), until
        return None, 0.0

    def take_slot(self) -> int:
        """A child: a slot of its own."""
        held = self._lock.acquire(timeout=1.0)
        try:
            free = next(i for i in range(_SLOTS) if not self._read(i).pid)
            self.write(free)
            return free
        finally:
            if held:
                self._lock.release()

    def write(
        self,
        index: int,
        started: float = 0.0,
        deadline: float = 0.0,
        unstarted: int = 0,
        workflow: uuid.UUID | None = None,
    ) -> None:
        """A child: what it is doing now."""
        raw = workflow.bytes if workflow else _NOBODY
        _SLOT.pack_into(self._page, _FIRST + index * _SLOT.size, own_number(), started, deadline, unstarted, raw)

    def free(self, index: int) -> None:
        """The slot's process is gone."""
        _SLOT.pack_into(self._page, _FIRST + index * _SLOT.size, 0, 0.0, 0.0, 0, _NOBODY)
        self._page[_TURNS + index] = 0

    def begin_turn(self, index: int, most: int) -> bool:
        """A child: an agent turn begins in this slot, unless `most` run already."""
        with self._among_threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                if sum(self._page[_TURNS : _TURNS + _SLOTS]) >= most:
                    return False
                self._page[_TURNS + index] = 1
                return True
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def end_turn(self, index: int) -> None:
        """A child: the agent turn of this slot is over."""
        self._page[_TURNS + index] = 0

    def is_busy(self) -> bool:
        """Whether the code of an activity runs in any process."""
        return any(slot.deadline for slot in self.slots())

    def slots(self) -> list[Slot]:
        """What all processes are doing."""
        rows = _SLOT.iter_unpack(self._page[_FIRST : _FIRST + _SLOT.size * _SLOTS])
        return [self._read(index) for index, row in enumerate(rows) if row[0]]

    def _read(self, index: int) -> Slot:
        pid, started, deadline, unstarted, raw = _SLOT.unpack_from(self._page, _FIRST + index * _SLOT.size)
        return Slot(index, pid, started, deadline, unstarted, None if raw == _NOBODY else uuid.UUID(bytes=raw))
