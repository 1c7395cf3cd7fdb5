"""The series of one model's requests, each found once: what a request adds at its end is then a few whole numbers.

A label set is looked up by tuples of strings, which takes longer than all the counting of a short request. The series
of a model are few and the models bounded (`labels`), so who counts holds them here.
"""

from bisect import bisect_left

from sidecar.counting.tally import Attributes, Counter, Latency, Tally
from slo.objective import Objective
from slo.signals import (
    ABANDONED,
    BAD,
    BROKEN_STREAMS,
    CLASS,
    E2E,
    GOOD,
    GUARDED,
    OBJECTIVE,
    OBJECTIVE_HASH,
    OUTCOME,
    PROMPT_EDGES_TOKENS,
    PROMPT_STRATA,
    PROMPT_TOKENS,
    REQUEST_MODEL,
    REQUESTS,
    RESULT,
    SLO_EVENTS,
    TOKEN_TYPE,
    TOKENS,
    TPOT,
    TTFT,
    TTFT_BY_PROMPT,
    TTFT_PREDICTION_ERROR,
    VERDICT,
)


class Events:
    """Good and bad of one objective. Held with it, so that its identity names it as long as these exist."""

    __slots__ = ("bad", "good", "objective")

    def __init__(self, objective: Objective, good: Counter, bad: Counter) -> None:
        self.objective, self.good, self.bad = objective, good, bad


class ModelSeries:
    """What is counted of the requests of one label. Its latencies and what went wrong on the way exist from now on; the
    rest once it is asked for."""

    __slots__ = (
        "_by_prompt",
        "_guarded",
        "_named",
        "_prediction_error",
        "_requests",
        "_tally",
        "_tokens",
        "abandoned",
        "broken",
        "by_objective",
        "e2e",
        "tpot",
        "ttft",
    )

    def __init__(self, tally: Tally, label: str) -> None:
        self._tally = tally
        self._named: Attributes = ((REQUEST_MODEL, label),)
        self.ttft, self.tpot, self.e2e = (tally.latency(metric, self._named) for metric in (TTFT, TPOT, E2E))
        self.abandoned, self.broken = (tally.counter(metric, self._named) for metric in (ABANDONED, BROKEN_STREAMS))
        self._requests: dict[tuple[str, str | None], Counter] = {}
        self._tokens: dict[str, Counter] = {}
        self._by_prompt: list[Latency | None] = [None] * len(PROMPT_STRATA)
        self._guarded: dict[tuple[str, bool], Counter] = {}
        self._prediction_error: Latency | None = None
        self.by_objective: dict[int, Events] = {}  # those that `judge_by` was told of, by their identity

    def requests(self, outcome: str, request_class: str | None = None) -> Counter:
        """Requests of this outcome and class."""
        found = self._requests.get((outcome, request_class))
        if found is None:
            klass: Attributes = () if request_class is None else ((CLASS, request_class),)
            found = self._tally.counter(REQUESTS, (*self._named, (OUTCOME, outcome), *klass))
            self._requests[outcome, request_class] = found
        return found

    def tokens(self, kind: str) -> Counter:
        """Tokens of this kind, `input` or `output`."""
        found = self._tokens.get(kind)
        if found is None:
            found = self._tokens[kind] = self._tally.counter(TOKENS, (*self._named, (TOKEN_TYPE, kind)))
        return found

    def ttft_by_prompt(self, tokens: int) -> Latency:
        """Times to the first token of prompts about as long as this."""
        place = bisect_left(PROMPT_EDGES_TOKENS, tokens)
        found = self._by_prompt[place]
        if found is None:
            named: Attributes = (*self._named, (PROMPT_TOKENS, PROMPT_STRATA[place]))
            found = self._by_prompt[place] = self._tally.latency(TTFT_BY_PROMPT, named)
        return found

    @property
    def prediction_error(self) -> Latency:
        """How far off the predictions of first tokens were."""
        if self._prediction_error is None:
            self._prediction_error = self._tally.latency(TTFT_PREDICTION_ERROR, self._named)
        return self._prediction_error

    def guarded(self, verdict: str, *, good: bool) -> Counter:
        """Streams of which the queue guard said this, and whose first token came in time or did not."""
        found = self._guarded.get((verdict, good))
        if found is None:
            named: Attributes = (*self._named, (VERDICT, verdict), (RESULT, GOOD if good else BAD))
            found = self._guarded[verdict, good] = self._tally.counter(GUARDED, named)
        return found

    def introduce_verdicts(self, verdicts: tuple[str, ...]) -> None:
        """Make their counters exist."""
        for verdict in verdicts:
            self.guarded(verdict, good=True)
            self.guarded(verdict, good=False)

    def judge_by(self, objective: Objective, digest: str | None) -> Events:
        """Count the events of an objective under its hash; None: nowhere, since another has replaced it."""
        if digest is None:
            good, bad = Counter(), Counter()
        else:
            named: Attributes = (*self._named, (OBJECTIVE, objective.name), (OBJECTIVE_HASH, digest))
            good, bad = (self._tally.counter(SLO_EVENTS, (*named, (RESULT, result))) for result in (GOOD, BAD))
        found = self.by_objective[id(objective)] = Events(objective, good, bad)
        return found

    def forget_events(self) -> None:
        """Let go of all objectives, as the tally does."""
        self.by_objective.clear()
