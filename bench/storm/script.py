"""What a source does for one request, written in the request itself: `head role token:5:0.05 reset`.

Both sides read the same words: the source plays them, and whoever asked knows every byte that must come. Words, with
their arguments behind colons; a range `3..9` is drawn before the request is sent:

    early                     an interim answer, 103
    head:HOW                  of a stream: `chunked`, `gzip` (chunked, too) or `close` (its end is the connection's)
    role finish usage done    events of a chat stream without a token; `usage` only where it was asked for
    token:COUNT:GAP:SIZE      events with a token, so many seconds apart, of so many characters
    error                     an error event
    end trailers              the stream's end, as its framing says; with fields behind it
    whole status:CODE         a whole answer, good or bad; ended by its length
    wait:SECONDS
    close reset               the connection ends; not by a goodbye but by RST
    cut garbage short         it ends within an event and its chunk; in what is no chunk; within a whole answer
    endless:GAP:SIZE hang     tokens, or nothing, until nobody listens any more
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

WORDS = ("me", " details", " ans", " the", " quick", " brown", "\\n", " jumps", " läzy", " 語", ".")
MODEL = "m"


@dataclass(frozen=True, slots=True)
class Step:
    """One word and its arguments."""

    word: str
    arguments: tuple[str, ...] = ()

    def number(self, at: int, default: float = 0.0) -> float:
        return float(self.arguments[at]) if at < len(self.arguments) else default

    @property
    def tokens(self) -> int:
        return int(self.number(0)) if self.word == "token" else 0

    @property
    def lasts_s(self) -> float:
        """How long it takes, if nothing holds it up."""
        if self.word == "token":
            return self.tokens * self.number(1)
        return self.number(0) if self.word == "wait" else 0.0


@dataclass(frozen=True, slots=True)
class Script:
    """The answer to the request of that number."""

    steps: tuple[Step, ...]
    number: int

    @property
    def lasts_s(self) -> float:
        return sum(step.lasts_s for step in self.steps)

    @property
    def tokens(self) -> int:
        return sum(step.tokens for step in self.steps)

    @property
    def status(self) -> int:
        """Of the answer, if one comes."""
        return next((int(step.number(0)) for step in self.steps if step.word == "status"), 200)

    def payload(self, step: Step, before: int) -> Iterator[bytes]:
        """What a step adds to the body, piece by piece; `before`: how many tokens have gone. Of `endless`, no end."""
        if step.word in ("token", "endless"):
            size = int(step.number(2 if step.word == "token" else 1))
            index = before
            while step.word == "endless" or index < before + step.tokens:
                yield self._token(index, size)
                index += 1
        elif step.word in ("whole", "short"):
            yield self._answer()
        elif step.word == "status":
            yield _json({"error": {"message": "told so", "type": "storm", "code": int(step.number(0))}})
        elif (event := self._event(step.word)) is not None:
            yield event

    def _token(self, index: int, size: int) -> bytes:
        word = WORDS[(self.number + index) % len(WORDS)]
        return self._chunk(f'{{"content":"{word * max(1, size // len(word))}"}}', "null")

    def _chunk(self, delta: str, finish: str) -> bytes:
        choice = f'{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}'
        return f"data: {self._before}{choice}]}}\n\n".encode()

    @property
    def _before(self) -> str:
        kind = '"object":"chat.completion.chunk","created":1796010822'
        return f'{{"id":"chatcmpl-{self.number:x}",{kind},"model":"{MODEL}","choices":['

    def _event(self, word: str) -> bytes | None:
        if word == "role":
            return self._chunk('{"role":"assistant","content":""}', "null")
        if word == "finish":
            return self._chunk("{}", '"stop"')
        if word == "usage":
            return f'data: {self._before}],"usage":{_text(self._usage)}}}\n\n'.encode()
        if word == "done":
            return b"data: [DONE]\n\n"
        if word == "cut":
            return b"data: {"
        if word == "error":
            return b'data: {"error":{"message":"the engine died","type":"InternalServerError","code":500}}\n\n'
        return None

    @property
    def _usage(self) -> dict[str, int]:
        return {"prompt_tokens": 7, "total_tokens": 7 + self.tokens, "completion_tokens": self.tokens}

    def _answer(self) -> bytes:
        content = "".join(WORDS[(self.number + index) % 5] for index in range(40))
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 7, "total_tokens": 47, "completion_tokens": 40}
        identity = {"id": f"chatcmpl-{self.number:x}", "object": "chat.completion", "model": MODEL}
        return _json(identity | {"choices": [choice], "usage": usage})


def drawn(template: str, number: int, rng: random.Random) -> Script:
    """A script with every range decided."""
    return read(
        " ".join(":".join(drawn_part(part, rng) for part in word.split(":")) for word in template.split()), number
    )


def drawn_part(part: str, rng: random.Random) -> str:
    """One argument; a range is decided."""
    low, dots, high = part.partition("..")
    if not dots:
        return part
    if "." in low + high:
        return f"{rng.uniform(float(low), float(high)):.3f}"
    return str(rng.randint(int(low), int(high)))


def read(text: str, number: int) -> Script:
    """The script that the words are."""
    steps = (word.split(":") for word in text.split())
    return Script(tuple(Step(word, tuple(arguments)) for word, *arguments in steps), number)


def text(script: Script) -> str:
    """The words of a script."""
    return " ".join(":".join((step.word, *step.arguments)) for step in script.steps)


def _json(value: object) -> bytes:
    return orjson.dumps(value)


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
