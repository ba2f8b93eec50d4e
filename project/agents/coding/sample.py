"""The files of the demonstration's repository: a small shop that signs its sessions with the library `latchkey`.

The library is vendored in two versions, so everything is offline; requirements.txt says which one is imported. The new
version renames what it had, and counts in seconds what was counted in minutes: the one is easy to see, the other not.
"""

from __future__ import annotations

from textwrap import dedent

VENDORED = '''
    """Puts the libraries of requirements.txt on the path, out of vendor/: an installer for places without a network."""
    import sys
    from pathlib import Path

    ROOT = Path(__file__).parent

    def activate():
        for line in (ROOT / "requirements.txt").read_text().split():
            name, _, version = line.partition("==")
            sys.path.insert(0, str(ROOT / "vendor" / f"{name}-{version}"))
'''

LATCHKEY_1 = '''
    """latchkey 1.0: signed tokens that end by themselves."""
    import base64, hashlib, hmac, json, time

    class LatchkeyError(ValueError):
        """The token is forged or too old."""

    def sign(payload, secret, minutes=60, now=None):
        """A token that is good for so many minutes."""
        ends = (time.time() if now is None else now) + 60 * minutes
        body = base64.urlsafe_b64encode(json.dumps([payload, ends]).encode())
        return body.decode() + "." + hmac.new(secret, body, hashlib.sha256).hexdigest()

    def read(token, secret, now=None):
        """The payload of a good token."""
        body, _, seal = token.partition(".")
        if not hmac.compare_digest(hmac.new(secret, body.encode(), hashlib.sha256).hexdigest(), seal):
            raise LatchkeyError("forged")
        payload, ends = json.loads(base64.urlsafe_b64decode(body))
        if (time.time() if now is None else now) >= ends:
            raise LatchkeyError("too old")
        return payload
'''

LATCHKEY_2 = '''
    """latchkey 2.0: signed tokens that end by themselves."""
    import base64, hashlib, hmac, json, time

    class InvalidToken(ValueError):
        """The token is forged or too old."""

    def issue(payload, *, key, ttl=3600, now=None):
        """A token that is good for so many seconds."""
        ends = (time.time() if now is None else now) + ttl
        body = base64.urlsafe_b64encode(json.dumps({"data": payload, "exp": ends}).encode())
        return body.decode() + "." + hmac.new(key, body, hashlib.sha512).hexdigest()

    def verify(token, *, key, now=None):
        """The payload of a good token."""
        body, _, seal = token.partition(".")
        if not hmac.compare_digest(hmac.new(key, body.encode(), hashlib.sha512).hexdigest(), seal):
            raise InvalidToken("forged")
        content = json.loads(base64.urlsafe_b64decode(body))
        if (time.time() if now is None else now) >= content["exp"]:
            raise InvalidToken("too old")
        return content["data"]
'''

CHANGES_2 = """
    # latchkey 2.0

    - `sign` is now `issue`, `read` is now `verify`, `LatchkeyError` is now `InvalidToken`.
    - The secret is the keyword argument `key`.
    - `minutes=` is now `ttl=`, in seconds.
"""

SESSIONS = '''
    """Who is logged in."""
    import latchkey

    from shop.secret import SECRET

    SESSION_MINUTES = 30

    def open_session(user, now=None):
        return latchkey.sign({"user": user}, SECRET, minutes=SESSION_MINUTES, now=now)

    def user_of(token, now=None):
        try:
            return latchkey.read(token, SECRET, now=now)["user"]
        except latchkey.LatchkeyError:
            return None
'''

INVITATIONS = '''
    """Links by which a friend may join."""
    import latchkey

    from shop.secret import SECRET

    def invite(email, now=None):
        return latchkey.sign({"email": email}, SECRET, minutes=7 * 24 * 60, now=now)

    def accept(token, now=None):
        return latchkey.read(token, SECRET, now=now)["email"]
'''

TESTS = """
    import time
    import unittest

    from shop.invitations import accept, invite
    from shop.sessions import open_session, user_of

    NOON, MINUTE = 1_800_000_000, 60

    class Sessions(unittest.TestCase):
        def test_lives_for_half_an_hour(self):
            token = open_session("ada", now=NOON)
            self.assertEqual(user_of(token, now=NOON + 29 * MINUTE), "ada")

        def test_ends_after_half_an_hour(self):
            token = open_session("ada", now=NOON)
            self.assertIsNone(user_of(token, now=NOON + 31 * MINUTE))

        def test_forged_is_nobody(self):
            self.assertIsNone(user_of(open_session("ada", now=NOON) + "0", now=NOON))

        def test_ends_on_the_real_clock(self):
            token = open_session("ada", now=time.time() - 30 * MINUTE + 1)
            time.sleep(1.1)
            self.assertIsNone(user_of(token))

    class Invitations(unittest.TestCase):
        def test_holds_for_six_days(self):
            token = invite("bo@example.org", now=NOON)
            self.assertEqual(accept(token, now=NOON + 6 * 24 * 60 * MINUTE), "bo@example.org")
"""

#: One commit each: path → text.
HISTORY: tuple[tuple[str, dict[str, str]], ...] = tuple(
    (message, {path: dedent(text).lstrip("\n") for path, text in files.items()})
    for message, files in (
        (
            "A shop with sessions and invitations",
            {
                "README.md": "# Shop\n\nRun its tests with: python -m unittest discover -s tests -t .\n",
                "CHANGELOG.md": "# Changes\n\n## Unreleased\n\n- invitations hold for a week\n",
                "requirements.txt": "latchkey==1.0\n",
                "vendored.py": VENDORED,
                "vendor/latchkey-1.0/latchkey.py": LATCHKEY_1,
                "shop/__init__.py": "import vendored\n\nvendored.activate()\n",
                "shop/secret.py": 'SECRET = b"for tests only"\n',
                "shop/sessions.py": SESSIONS,
                "shop/invitations.py": INVITATIONS,
                "tests/__init__.py": "",
                "tests/test_shop.py": TESTS,
            },
        ),
        (
            "Vendor latchkey 2.0",
            {"vendor/latchkey-2.0/latchkey.py": LATCHKEY_2, "vendor/latchkey-2.0/CHANGES.md": CHANGES_2},
        ),
    )
)
