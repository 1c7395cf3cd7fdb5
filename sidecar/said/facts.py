"""What one event of an answer can say, in the words that all dialects share.

A dialect's functions take a parsed JSON value of a stranger (`Json`: any shape whatever) and give an `Event`. They may
raise any of `STRANGE` on a shape that they do not know; `exchange` counts such an event as unparsed. Nothing of the
text itself is kept: an event says that there is an answer, not which.
"""

import re
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = Any
STRANGE = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)

MAX_COUNT = 1 << 40
MAX_NAME_CHARS = 256
MAX_CHOICES = 128
_IDENTIFIER = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class Usage(NamedTuple):
    """A server's own count of tokens, of the whole answer up to the event that carries it; None where it says none."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int = 0


class Event(NamedTuple):
    """The facts of one event. (A named tuple: made for each event, it costs a quarter of a frozen dataclass.)

    `progress`, of dialects whose frames repeat the whole answer so far, grows with each token: such an event bears a
    token only when it grew, and speaks of its own `choice` alone, its usage too. `finish` holds `(choice, reason)`
    pairs; `done` is the dialect's own end mark.
    """

    reasoning: bool = False
    answer: bool = False
    choice: int = 0
    finish: tuple[tuple[int, str], ...] = ()
    usage: Usage | None = None
    error: str | None = None
    done: bool = False
    progress: int | None = None
    known: bool = True


# Events without a fact of their own are shared: nearly every event of a stream is one of these.
ANSWER = Event(answer=True)
REASONING = Event(reasoning=True)
NOTHING = Event()
UNKNOWN = Event(known=False)
_SHARED = {(True, False): REASONING, (False, True): ANSWER, (False, False): NOTHING}


def event(
    *,
    reasoning: bool = False,
    answer: bool = False,
    finish: tuple[tuple[int, str], ...] = (),
    usage: Usage | None = None,
    **rest: Any,
) -> Event:
    """An event of these facts, a shared one where there is one."""
    if not rest and not finish and usage is None and (shared := _SHARED.get((reasoning, answer))) is not None:
        return shared
    return Event(reasoning=reasoning, answer=answer, finish=finish, usage=usage, **rest)


def count(value: Json) -> int | None:
    """A token count, or None for what cannot be one."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None  # a bool is no count


def name(value: Json) -> str | None:
    """A model's name or a finish reason, or None for what cannot be one."""
    return value if isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARS else None


def error_type(value: Json) -> str | None:
    """The kind of error that an error object names, as an identifier fit for a label; None when `value` is no error.

    Takes the forms met: `{"error": {"type" | "code": ...}}`, `{"error": text, "error_type": ...}`, `{"object": "error",
    "type": ...}`, `{"type": "error", ...}`. The message itself is never read.
    """
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    if not error and value.get("object") != "error" and value.get("type") != "error":
        return None
    inner = error if isinstance(error, dict) else {}
    for candidate in (
        inner.get("type"),
        value.get("error_type"),
        value.get("type"),
        inner.get("code"),
        value.get("code"),
    ):
        text = str(candidate) if isinstance(candidate, str | int) and not isinstance(candidate, bool) else ""
        if text != "error" and _IDENTIFIER.fullmatch(text):
            return text
    return "error"
