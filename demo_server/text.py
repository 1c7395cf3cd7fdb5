"""Bytes as tokens, and the way back to text a client may be shown.

The tokenizer is the identity on UTF-8 bytes plus a few specials. The way back is harder: one character may span
several tokens, and a stop string may span several characters. `TextStream` releases a character when it is whole,
and holds back text only while it could still turn out to be the beginning of a stop string.
"""

import codecs
from collections.abc import Iterable, Sequence

BOS = 256
EOS = 257
TURN = 258  # opens one message of a chat; its role and a newline follow
VOCABULARY = 264  # a multiple of 8, which matrix units like; the last few are never used

# What the model may say: with random weights this alone decides that every token is one readable character.
PRINTABLE = tuple(range(0x20, 0x7F))


def encode(text: str) -> tuple[int, ...]:
    """Tokens of a plain prompt. A lone surrogate, which JSON can spell, becomes `?`."""
    return (BOS, *text.encode("utf-8", errors="replace"))


def encode_chat(messages: Iterable[tuple[str, str]]) -> tuple[int, ...]:
    """Tokens of (role, text) messages, ending where the assistant's answer begins."""
    tokens = [BOS]
    for role, text in messages:
        tokens += (TURN, *f"{role}\n{text}".encode(errors="replace"), EOS)
    return (*tokens, TURN, *b"assistant\n")


class TextStream:
    """Turns tokens into text pieces that are valid Unicode and never contain a stop string.

    The pieces joined are the decoded bytes (invalid ones replaced by U+FFFD), cut before the first stop string.
    """

    __slots__ = ("_decoder", "_held", "_stops", "stop_reason")

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stops = tuple(stops)
        self._held = ""
        self.stop_reason: str | None = None

    def push(self, token: int) -> str:
        """Take one token and return the text that is now certain, often all of it. Specials have no text."""
        if token >= BOS:
            return ""
        return self._release(self._decoder.decode(bytes((token,))))

    def flush(self) -> str:
        """Return what is still held back, once no more tokens come. Half a character becomes U+FFFD."""
        last = self._release(self._decoder.decode(b"", final=True))
        held, self._held = self._held, ""
        return last + held

    def _release(self, piece: str) -> str:
        if self.stop_reason is not None:
            return ""
        if not self._stops or not piece:
            return piece
        text = self._held + piece
        found = [(at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            at, self.stop_reason = min(found)
            self._held = ""
            return text[:at]
        keep = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
