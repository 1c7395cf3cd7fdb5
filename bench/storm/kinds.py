"""Every kind of request in the storm: its script, what its client does, and what must be counted of it.

`counts` are the events of the objectives `first pace whole answered`, in this order: `+` good, `-` bad, `.` none. They
follow from DESIGN 5 alone. Times keep far from the thresholds of `SPEC`, so that a busy machine changes none of them:
a request that took `SLACK_S` longer than planned may count either way, and is said to be disturbed.
"""

import random
from dataclasses import dataclass
from typing import Literal

from storm.script import MODEL, Script, drawn, drawn_part, text

SPEC = f"""
service: soak
objectives:
  - {{name: first, signal: ttft, percentile: 95, threshold: 4s}}
  - {{name: pace, signal: tpot, percentile: 95, threshold: 1s, stall: 4s}}
  - {{name: whole, signal: e2e, percentile: 95, threshold: 14s}}
  - {{name: answered, signal: availability, target: 99%, patience: 6s}}
  - {{name: roomy, signal: kv_occupancy, threshold: 90%, target: 99%, match: {{model: {MODEL}}}}}
"""
OBJECTIVES = ("first", "pace", "whole", "answered")
SLACK_S = 2.0

Manner = Literal["reads", "slow", "leaves", "half", "refused", "lines up", "looks"]
"""What a client does: read the answer; read it in pauses; leave before its end; leave before the request's end; be
refused in the middle of it; send several at once; ask for something that is no completion."""

Sight = Literal["whole", "broken", "502", "any"]
"""What a client sees: the answer as the source gave it, or one that breaks off, or the sidecar's own answer."""

PROMPTS = ((40, 40), (400, 30), (3000, 20), (60_000, 8), (400_000, 2))
"""Bytes of a prompt, and how often: among them those that are held whole, and those too long for it."""

HEAD = "head:chunked role"
END = "finish usage done end"
STREAM = f"{HEAD} token:5..12:0.02..0.15:20..60 {END}"
BEGUN = f"{HEAD} token:5..9:0.05:20"
FULL = f"{HEAD} endless:0:4000"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind; `share` of about a thousand. `leaves`: after how many tokens, and how long behind them."""

    name: str
    share: int
    script: str
    outcomes: tuple[str, ...]
    counts: str
    sees: Sight = "whole"
    manner: Manner = "reads"
    stream: bool = True
    leaves: str = "0"
    synthetic: bool = False
    asks_usage: bool = False

    @property
    def plain(self) -> bool:
        """Whether it may be one of several sent at once: whole, and soon."""
        return (
            self.manner == "reads"
            and self.sees == "whole"
            and not any(w in self.script for w in ("wait", ":close", "2.5"))
        )


def _kind(name: str, share: int, script: str, outcome: str, counts: str, **more: object) -> Kind:
    return Kind(name, share, script, tuple(outcome.split()), counts, **more)  # type: ignore[arg-type]


KINDS = (
    # What ends well.
    _kind("stream", 190, STREAM, "ok", "++++"),
    _kind("stream, usage asked", 80, STREAM, "ok", "++++", asks_usage=True),
    _kind("stream, gzip", 40, STREAM.replace("chunked", "gzip"), "ok", "++++"),
    _kind("stream, until close", 30, STREAM.replace("chunked", "close"), "ok", "++++"),
    _kind("stream, hints and trailers", 30, f"early {STREAM}".replace("end", "trailers"), "ok", "++++"),
    _kind("stream, synthetic", 20, STREAM, "ok", "....", synthetic=True),
    _kind("whole", 90, "wait:0.0..0.4 whole", "ok", "..++", stream=False),
    _kind("no output", 20, f"{HEAD} finish usage done end", "no_output", "...+"),
    _kind("lined up", 30, "", "", "", manner="lines up"),
    _kind("slow reader", 12, f"{HEAD} token:150..300:0:4000 {END}", "ok", "++++", manner="slow"),
    # What the server refuses, or breaks.
    _kind("500", 15, "wait:0.0..0.3 status:500", "error", "-.--"),
    _kind("503", 15, "status:503", "rejected", "-.--"),
    _kind("503, whole", 10, "status:503", "rejected", "..--", stream=False),
    _kind("429", 15, "status:429", "quota", "...."),
    _kind("400", 15, "wait:0.0..0.1 status:400", "client_error", "...."),
    _kind("error in a stream", 20, f"{BEGUN} error end", "error", "+.--"),
    _kind("error first in a stream", 10, f"{HEAD} error done end", "error", "-.--"),
    _kind("reset in a stream", 25, f"{BEGUN} wait:0.3 reset", "error", "+.--", sees="broken"),
    _kind("reset before a token", 10, f"{HEAD} wait:0.3 reset", "error", "-.--", sees="broken"),
    _kind("reset before the head", 15, "wait:0.1..0.4 reset", "error", "-.--", sees="502"),
    _kind("close before the head", 15, "wait:0.1..0.4 close", "error", "-.--", sees="502"),
    _kind("cut in a chunk", 20, f"{BEGUN} wait:0.1 cut", "error", "+.--", sees="broken"),
    _kind("no chunk", 15, f"{BEGUN} wait:0.1 garbage", "error", "+.--", sees="broken"),
    _kind("cut before the close", 15, f"{BEGUN} close".replace("chunked", "close"), "error", "+.--", sees="any"),
    _kind("cut whole answer", 15, "short", "error", "..--", sees="broken", stream=False),
    _kind("reset behind the finish", 15, f"{BEGUN} finish wait:0.3 reset", "ok", "++++", sees="broken"),
    # What is slow.
    _kind("slow head", 6, f"wait:9 {STREAM}", "ok", "-++-"),
    _kind("slow whole", 6, "wait:9 whole", "ok", "..+-", stream=False),
    _kind("slow pace", 6, f"{HEAD} token:4:2.5:20 {END}", "ok", "+-++"),
    _kind("stall", 8, f"{BEGUN} wait:8 token:5:0.05:20 {END}", "ok", "+-++"),
    # Who leaves.
    _kind("leaves a stream", 70, f"{HEAD} endless:0.05:20", "cancelled", "++..", manner="leaves", leaves="5"),
    _kind("leaves a full stream", 15, FULL, "cancelled", "++..", manner="leaves", leaves="5:0.5..1.5"),
    _kind("leaves before the head", 30, "hang", "cancelled", "....", manner="leaves", leaves="0:0.6..1.5"),
    _kind("leaves before a token", 15, f"{HEAD} hang", "cancelled", "....", manner="leaves", leaves="0:0.6..1.5"),
    _kind("waits in vain", 3, "hang", "cancelled", "-.--", manner="leaves", leaves="0:18"),
    _kind("waits in a stream in vain", 3, f"{BEGUN} hang", "cancelled", "+--.", manner="leaves", leaves="4:18"),
    _kind("leaves before it has asked", 40, "hang", "", "....", manner="half"),
    # What races, by its nature: the answer comes while the request is being sent.
    _kind("refused while sent", 10, "status:413 close", "client_error error", "....", sees="any", manner="refused"),
    _kind("no completion", 50, "", "", "....", manner="looks"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request:
    """One request to send: its number is in its trace id, and the source sees it too. `tokens` and `after_s`: when its
    client leaves, if it does."""

    number: int
    kind: Kind
    script: Script
    minor: int
    close: bool
    padding: int
    tokens: int
    after_s: float

    @property
    def lasts_s(self) -> float:
        """How long it should take from the moment it is whole."""
        return self.script.lasts_s + self.after_s

    @property
    def takes_gzip(self) -> bool:
        return "gzip" in self.kind.script

    @property
    def is_full(self) -> bool:
        """Whether more comes than is read."""
        return "endless:0:" in self.kind.script

    def whole(self) -> bytes:
        """Head and body; the length says where it ends."""
        body = self.body()
        return self.head(f"Content-Length: {len(body)}") + body

    def body(self) -> bytes:
        usage = ',"stream_options":{"include_usage":true}' if self.kind.asks_usage else ""
        stream = ',"stream":true' if self.kind.stream else ""
        said = f'"storm":{{"number":{self.number},"script":"{text(self.script)}"}}'
        prompt = '{"role":"user","content":"' + "What is it? " * (self.padding // 12) + '"}'
        return f'{{"model":"{MODEL}"{stream}{usage},{said},"messages":[{prompt}]}}'.encode()

    def head(self, framing: str) -> bytes:
        """The head; `framing`: the field that says where the body ends."""
        lines = [
            f"POST /v1/chat/completions HTTP/1.{self.minor}",
            "Host: api.test",
            "Content-Type: application/json",
            f"traceparent: 00-{self.number:032x}-{self.number | 1 << 63:016x}-01",
            f"X-Request-Id: {self.number}",
            framing,
        ]
        if self.takes_gzip:
            lines.append("Accept-Encoding: gzip")
        if self.kind.synthetic:
            lines.append("X-FirstToken-Class: synthetic")
        if self.kind.manner == "refused":
            lines.append("X-Storm: refuse")
        if self.close:
            lines.append("Connection: close")
        elif not self.minor:
            lines.append("Connection: keep-alive")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


def request(kind: Kind, number: int, rng: random.Random) -> Request:
    """A request of this kind, with all that chance decides about it."""
    tokens, *after_s = (drawn_part(part, rng) for part in kind.leaves.split(":"))
    size = rng.choices(*zip(*PROMPTS, strict=True))[0]
    if kind.manner == "refused":
        size = 1_000_000
    elif kind.manner == "leaves":
        size = min(size, 3000)  # so that the sidecar has it all before its client leaves
    return Request(
        number,
        kind,
        drawn(kind.script, number, rng),
        minor=0 if kind.manner in ("reads", "leaves") and rng.random() < 0.1 else 1,
        close=rng.random() < 0.25,
        padding=size,
        tokens=int(tokens),
        after_s=float(after_s[0]) if after_s else 0.0,
    )
