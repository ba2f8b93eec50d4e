"""Codecs: how inputs, results, events, candidates and answers lie in the record, where plain JSON will not do (OUTLAST["CODEC"]).

    OUTLAST = {"CODEC": {"BACKEND": "flows.codecs.AesGcm", "KEYS": ["env:OUTLAST_KEY_2027", "env:OUTLAST_KEY_2026"]}}

A codec seals values, not rows: what SQL looks for (keys, names, event types, statuses, digests) is never inside. The first key seals; each of
them opens. So a key is replaced by putting a new one in front; the old one stays listed as long as something is sealed with it. The setting is
for every process alike: one without it stops at a sealed value with an error that says so, and changes nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from flows.conf import conf
from flows.core import payload
from flows.core.errors import PayloadError
from flows.core.payload import ENVELOPE, Codec

NONCE_BYTES = 12
KEY_BYTES = (16, 24, 32)
#: What every sealed text is bound to besides its key: another use of the same key does not open it.
BOUND = b"outlast-payload-1"


class AesGcm:
    """AES-GCM of the package `cryptography` (extra `outlast[encryption]`): nobody reads a value without a key, or alters it unseen.

    Args:
        keys: references, `env:NAME` or `setting:NAME`, the newest first. What they name is 16, 24 or 32 bytes in base64, or bytes of that
            length in a setting.

    Raises:
        ImproperlyConfigured: a key is not there or no key, or `cryptography` is not installed. No value is shown.
    """

    name = "aes-gcm"

    def __init__(self, keys: Any) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise ImproperlyConfigured('the codec AesGcm needs the extra: pip install "outlast[encryption]"') from None
        if isinstance(keys, str) or not isinstance(keys, Sequence) or not keys:
            raise ImproperlyConfigured('KEYS lists references, the newest first: "KEYS": ["env:OUTLAST_KEY"]')
        found = [_key(reference) for reference in keys]
        self._keys = {_id(key): AESGCM(key) for key in found}
        self._newest = _id(found[0])
        self._altered: type[Exception] = InvalidTag

    def seal(self, text: str) -> Mapping[str, Any]:
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._keys[self._newest].encrypt(nonce, text.encode(), BOUND)
        return {ENVELOPE: self.name, "key": self._newest, "data": base64.b64encode(nonce + sealed).decode("ascii")}

    def is_current(self, envelope: Mapping[str, Any]) -> bool:
        """Whether it was sealed with the newest key."""
        return envelope.get(ENVELOPE) == self.name and envelope.get("key") == self._newest

    def open(self, envelope: Mapping[str, Any]) -> str:
        if envelope.get(ENVELOPE) != self.name:
            raise PayloadError("a stored value", f"was written by the codec {envelope.get(ENVELOPE)!r:.40}, not by {self.name}")
        if set(envelope) != {ENVELOPE, "key", "data"}:
            raise PayloadError("a stored value", "was altered since it was sealed")
        key = self._keys.get(str(envelope.get("key")))
        if key is None:
            raise PayloadError(
                "a stored value", f"was sealed with the key {envelope.get('key')!r:.40}, which KEYS does not list (any more)"
            )
        try:
            raw = base64.b64decode(str(envelope.get("data")), validate=True)
            return key.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], BOUND).decode()
        except (self._altered, binascii.Error, ValueError):
            raise PayloadError("a stored value", "was altered since it was sealed") from None


def _key(reference: Any) -> bytes:
    kind, _, name = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if kind not in ("env", "setting") or not name:
        raise ImproperlyConfigured("a key in KEYS is a reference: env:NAME of the environment, or setting:NAME of the settings")
    value = os.environ.get(name) if kind == "env" else getattr(settings, name, None)
    if not value:
        raise ImproperlyConfigured(f"the key {reference} is not set")
    try:
        key = bytes(value) if isinstance(value, bytes) else base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError):
        raise ImproperlyConfigured(f"the key {reference} is not base64") from None
    if len(key) not in KEY_BYTES:
        raise ImproperlyConfigured(
            f"the key {reference} has {len(key)} bytes; it needs 32: "
            'python -c "import base64, os; print(base64.b64encode(os.urandom(32)).decode())"'
        )
    return key


def _id(key: bytes) -> str:
    """By what a key is known in the record; nothing of the key."""
    return hashlib.sha256(b"outlast-key-id:" + key).hexdigest()[:12]


def made(given: Any) -> Codec | None:
    """The codec that a value of OUTLAST["CODEC"] names.

    Raises:
        ImproperlyConfigured: it names none, or that cannot be made.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping) or not isinstance(given.get("BACKEND"), str):
        raise ImproperlyConfigured('OUTLAST["CODEC"] is None, or {"BACKEND": "flows.codecs.AesGcm", "KEYS": ["env:OUTLAST_KEY"]}')
    try:
        backend: Callable[..., Codec] = import_string(given["BACKEND"])
    except ImportError:
        raise ImproperlyConfigured(f'OUTLAST["CODEC"]: {given["BACKEND"]!r} cannot be imported') from None
    options = {str(name).lower(): value for name, value in given.items() if name != "BACKEND"}
    try:
        codec = backend(**options)
    except TypeError as fault:
        raise ImproperlyConfigured(f'OUTLAST["CODEC"]: {given["BACKEND"]} does not take these options: {fault}') from None
    if not callable(getattr(codec, "seal", None)) or not callable(getattr(codec, "open", None)):
        raise ImproperlyConfigured(f'OUTLAST["CODEC"]: {given["BACKEND"]} has no seal and open')
    return codec


class _Refused:
    """Stands for a codec that cannot be made: nothing is stored plain because a key is missing."""

    def __init__(self, why: str) -> None:
        self._why = why

    def seal(self, text: str) -> Mapping[str, Any]:
        raise ImproperlyConfigured(self._why)

    def open(self, envelope: Mapping[str, Any]) -> str:
        raise ImproperlyConfigured(self._why)


def configure() -> None:
    """Use the codec that the settings name. One that cannot be made refuses every value (a check tells why), so commands still run."""
    try:
        payload.use(made(conf.CODEC))
    except ImproperlyConfigured as fault:
        payload.use(_Refused(str(fault)))


def _on_change(*, setting: str, **_: object) -> None:
    if setting == "OUTLAST":
        conf.reset()
        configure()


setting_changed.connect(_on_change, dispatch_uid="outlast-codec")
