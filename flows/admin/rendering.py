"""Text and values from outside as safe HTML: escaped, hidden characters named, direction kept inside its element."""

from __future__ import annotations

import json
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.utils import formats, timezone
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from flows.core import visible

MAX_VALUE = 20_000


def marked(text: str) -> SafeString:
    """The text, escaped, with a mark where a hidden character stands."""
    parts = (_mark(part.title, part.text) if part.hidden else escape(part.text) for part in visible.segments(text))
    return mark_safe("".join(parts))  # noqa: S308 - every part is escaped above


@lru_cache(maxsize=1024)
def _mark(title: str, text: str) -> SafeString:
    """The same few stand thousands of times in a text that somebody made up to be slow."""
    return format_html('<span class="oa-hidden" title="{}">{}</span>', title, text)


def inline(text: str) -> SafeString:
    """A short text inside a sentence or a cell."""
    return format_html('<bdi class="oa-text">{}</bdi>', marked(text))


def block(text: str) -> SafeString:
    """A long text, line by line as it is; it can be scrolled with the keyboard."""
    return format_html('<pre class="oa-block" dir="auto" tabindex="0">{}</pre>', marked(text))


def value(data: Any) -> SafeString:
    """A JSON value for an operator; a very long one is cut, and says so."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    if len(text) > MAX_VALUE:
        text = f"{text[:MAX_VALUE]}\n… ({len(text):,} characters in all)"
    return block(text)


def chip(word: str, label: object = "") -> SafeString:
    """A status: a word in an outline; the colour only repeats what the word says."""
    return format_html('<span class="oa-chip oa-chip-{}">{}</span>', word.replace("_", "-"), label or word)


def lines(items: list[SafeString]) -> SafeString:
    """Several things below one another."""
    return format_html_join("", "<div>{}</div>", ((item,) for item in items))


def dated(what: SafeString, told: Any, moment: datetime | None) -> SafeString:
    """A status, and below it when something was, in words that say `%(moment)s`."""
    if moment is None:
        return what
    told = told % {"moment": formats.localize(timezone.localtime(moment))}
    return format_html('{}<div class="oa-quiet">{}</div>', what, told)
