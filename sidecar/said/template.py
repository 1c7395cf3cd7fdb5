"""The template that the reads of one stream share: everything but the text of one token.

A server writes nearly every event of a stream from one template: the same id, model and keys, and one string that
differs. Once such a read has been parsed, its likes need not be: a read that is `prefix + text + suffix`, where `text`
is the inside of a JSON string and not empty, says the same `Event`. That is no guess. Prefix and suffix are compared
byte for byte; the texts of many reads are parsed together, as one list of JSON strings, so that quotes, escapes and
broken UTF-8 are what the JSON parser takes them for; and a dialect's functions ask of a text only whether it is empty,
which `learn` proves by parsing the read with another text in its place, and with none.

Pure: reads in, yes or no out. What does not fit is the caller's to parse.
"""

import itertools
import re
from dataclasses import dataclass

from orjson import loads

from sidecar.said.dialects import Read
from sidecar.said.facts import ANSWER, REASONING, STRANGE, Event

MAX_READ_BYTES = 16 << 10  # a longer read is no single token
MAX_RUN_BYTES = 1 << 20  # of all texts of a run together; an event over this limit would be unread
MAX_STRINGS = 32  # looked at in one read to find the text

_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?')
_BETWEEN = b'",\n"'  # no string can swallow it, by a backslash before it: a bare line feed within a string is no JSON


@dataclass(frozen=True, slots=True)
class Template:
    """Prefix and suffix of a stream's reads, and what each read made from them says: `ANSWER` or `REASONING`.

    A read is made from it when it is `prefix + text + suffix` and `is_text([text])`. Who meets many reads compares the
    ends of each at once (a `removeprefix`, a `removesuffix` and a look at the length) and asks of all texts later.
    """

    prefix: bytes
    suffix: bytes
    fact: Event

    def frames(self, read: bytes) -> bool:
        """Whether a read begins and ends as this template does."""
        longer = len(read) > len(self.prefix) + len(self.suffix)
        return longer and read.startswith(self.prefix) and read.endswith(self.suffix)

    def read(self, text: bytes) -> bytes:
        """The read with this text."""
        return self.prefix + text + self.suffix

    def is_text(self, texts: list[bytes]) -> bool:
        """Whether each of these is the inside of a JSON string, and not empty."""
        inside = _BETWEEN.join(texts)
        if len(inside) > MAX_RUN_BYTES:
            return False
        try:
            found = loads(b'["%b"]' % inside)
        except ValueError:
            return False
        return len(found) == len(texts) and all(found)


def learn(read: bytes, event: Read) -> Template | None:
    """The template of a read that is known to be whole and to have brought one token; None if it shares none."""
    start, end = read.find(b"{"), read.rfind(b"}") + 1
    if start < 0 or end <= start or len(read) > MAX_READ_BYTES:
        return None
    payload = read[start:end]
    if b"\n" in payload:
        return None  # several events, of which the others brought no token
    fact = _fact(payload, event)
    if fact is not ANSWER and fact is not REASONING:
        return None
    # The last string first: a server writes who answers before what.
    for match in reversed(list(itertools.islice(_STRING.finditer(payload), MAX_STRINGS))):
        if match[2] is not None or not match[1]:
            continue
        before, after = payload[: match.start(1)], payload[match.end(1) :]
        if _fact(before + after, event) is not fact and _fact(before + b"x" + after, event) is fact:
            return Template(read[:start] + before, after + read[end:], fact)
    return None


def _fact(payload: bytes, event: Read) -> Event | None:
    try:
        return event(loads(payload))
    except STRANGE:
        return None
