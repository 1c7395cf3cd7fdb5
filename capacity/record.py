"""What is known of one request, and of a whole load: plain values that other rooms judge.

Times are seconds from the start of the load on one monotonic clock. Latency counts from `intended_s`, when the request
was due, not from when this client got round to it: a client that falls behind its schedule must not hide the wait
(coordinated omission). `written_s` is kept beside it: from there on the request was in the server's hands.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from capacity.reply import Reply


@dataclass(frozen=True, slots=True)
class Record:
    """One request. A time that never came is None; `outcome` is one of `slo.signals.OUTCOMES`."""

    model: str
    intended_s: float
    end_s: float
    outcome: str
    sent_s: float | None = None
    written_s: float | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int = 0
    status: int | None = None
    error: str = ""

    @property
    def ttft_s(self) -> float | None:
        """From when the request was due to its first token."""
        return None if self.first_token_s is None else self.first_token_s - self.intended_s

    @property
    def hop_ttft_s(self) -> float | None:
        """From the request's last byte written to its first token: what the next hop can have seen."""
        if self.first_token_s is None or self.written_s is None:
            return None
        return self.first_token_s - self.written_s

    @property
    def tpot_s(self) -> float | None:
        """Mean time of each token after the first; None under two tokens."""
        if self.first_token_s is None or self.last_token_s is None or self.output_tokens < 2:
            return None
        return (self.last_token_s - self.first_token_s) / (self.output_tokens - 1)

    @property
    def e2e_s(self) -> float:
        return self.end_s - self.intended_s

    @property
    def late_s(self) -> float | None:
        """How long after it was due this client began to send it."""
        return None if self.sent_s is None else self.sent_s - self.intended_s


@dataclass(frozen=True, slots=True)
class Load:
    """A load that has been run: `started_at_s` is epoch seconds, every other time counts from there."""

    target: str
    started_at_s: float
    seconds: float
    planned: int
    records: tuple[Record, ...]

    def as_json(self) -> dict[str, object]:
        """The load with every record, for a JSON file."""
        return {
            "target": self.target,
            "started_at_s": round(self.started_at_s, 6),
            "seconds": round(self.seconds, 6),
            "planned": self.planned,
            "records": [_rounded(asdict(record)) for record in self.records],
        }


def outcome_of(reply: Reply) -> str:
    """The outcome of a request whose reply has ended, by DESIGN 5."""
    if reply.status is None:
        return "error"
    if reply.status == 503:
        return "rejected"
    if reply.status == 429:
        return "quota"
    if 400 <= reply.status < 500:
        return "client_error"
    if reply.status >= 300 or reply.error or not reply.is_complete:
        return "error"
    return "ok" if reply.events else "no_output"


def _rounded(values: Mapping[str, object]) -> dict[str, object]:
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in values.items()}
