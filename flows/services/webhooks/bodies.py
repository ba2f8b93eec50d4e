"""The body of a delivery as it lies in the record: as it came, byte for byte, or sealed where `OUTLAST["CODEC"]` seals what a flow is told.

The first byte says which. What becomes an event is kept by the inbox; here it is what nothing could be made of, and conflicts.
"""

from __future__ import annotations

import base64
import json

from flows.core import payload

PLAIN, SEALED = b"\x00", b"\x01"

#: A body has been measured where it came in.
ANY = 1 << 30


def packed(body: bytes) -> bytes:
    """What is stored.

    Raises:
        PayloadError: the codec cannot seal it now; then nothing may be stored.
    """
    text = payload.encode(base64.b64encode(body).decode(), "the body of a delivery", ANY)
    return SEALED + text.encode() if text.startswith("{") else PLAIN + body


def unpacked(stored: bytes | memoryview) -> bytes:
    """The body as it came.

    Raises:
        PayloadError: it was sealed by a codec, or with a key, that is not configured here, or it was altered.
    """
    kept = bytes(stored)
    if kept[:1] == PLAIN:
        return kept[1:]
    return base64.b64decode(payload.decode(json.loads(kept[1:])))
