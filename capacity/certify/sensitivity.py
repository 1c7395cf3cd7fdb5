"""What the certified rate is worth under other requests: a run each with prompts and answers of other lengths, and with
another part of the prompts shared.

A certificate is one of a workload, and workloads drift. These runs certify nothing: each begins on an empty server at
the certified rate, and says what part of every budget it spends. They come after the search, and take half as long as
one of its runs may at most.
"""

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import get_args

from capacity.certify import judge
from capacity.certify.judge import Rigour
from capacity.certify.lengths import Lengths
from capacity.certify.search import Outcome, Search, Varied, search
from capacity.certify.trial import Answer, Ask, AskRun, Goal, Seen, Variation
from capacity.certify.workload import Workload
from capacity.schedule import Span

NAMES: Mapping[Variation, str] = {
    "stated": "as stated",
    "shorter prompts": "prompts −20%",
    "longer prompts": "prompts +20%",
    "longer answers": "answers +20%",
}
"""Less that of another prefix, whose name depends on what is shared as stated: see `name_of`."""
VARIATIONS: tuple[Variation, ...] = tuple(one for one in get_args(Variation) if one != "stated")
SHORTER, LONGER = 0.8, 1.2
SHARED_PART = 0.5
"""Of a mean prompt, where the workload as stated shares nothing."""
BAD_IN_BUDGET = 20
"""A run is to be so long that this many bad requests would spend the smallest budget."""
RUN_PART = 0.5
"""Of the time that a run of the search may take at most."""


def search_and_vary(goals: tuple[Goal, ...], rigour: Rigour) -> Search:
    """Search, and load the certified rate, if there is one, with every other workload."""
    outcome = yield from search(goals, rigour)
    if outcome.certified is None:
        return outcome
    return replace(outcome, varied=(yield from _vary(outcome, outcome.certified.rate_rps, rigour)))


def _vary(outcome: Outcome, rate_rps: float, rigour: Rigour) -> Generator[Ask, Answer, tuple[Varied, ...]]:
    number = max(run for probe in outcome.probes for run in probe.runs)
    requests = _enough(outcome.goals, rate_rps, rigour)
    varied = []
    for variation in VARIATIONS:
        number += 1
        seen = yield AskRun(number, rate_rps, "empty", requests, variation)
        assert isinstance(seen, Seen)
        varied.append(Varied(variation, judge.by_goal([seen]), number))
    return tuple(varied)


def _enough(goals: tuple[Goal, ...], rate_rps: float, rigour: Rigour) -> int:
    """Requests that show whether a budget is spent, as far as the time for them goes."""
    wanted = BAD_IN_BUDGET / min(goal.budget for goal in goals if not goal.is_watched)
    most = min(rigour.most_requests, RUN_PART * rate_rps * rigour.most_run_seconds)
    return max(int(min(max(wanted, rate_rps * rigour.least_seconds), most)), judge.FIRST_LOOK)


def longest_s(rigour: Rigour) -> float:
    """How long these runs may take, all together."""
    return len(VARIATIONS) * RUN_PART * rigour.most_run_seconds


def varied(workload: Workload, variation: Variation) -> Workload:
    """The workload of a variation."""
    if variation == "other prefix":
        shared = 0 if workload.shared_words else workload.tokens.words(round(SHARED_PART * workload.lengths.mean[0]))
        return replace(workload, shared_words=shared)
    into = {"shorter prompts": SHORTER, "longer prompts": LONGER}.get(variation, 1.0)
    out = LONGER if variation == "longer answers" else 1.0
    return replace(workload, lengths=_scaled(workload.lengths, into, out))


def _scaled(lengths: Lengths, into: float, out: float) -> Lengths:
    def times(tokens: int, by: float) -> int:
        return max(round(by * tokens), 1)

    if lengths.spans is None:
        return replace(lengths, pairs=tuple((times(a, into), times(b, out)) for a, b in lengths.pairs))
    spans = (
        Span(times(span.low, by), times(span.high, by)) for span, by in zip(lengths.spans, (into, out), strict=True)
    )
    return replace(lengths, spans=(next(spans), next(spans)))


def name_of(variation: Variation, shared_words: int) -> str:
    """What a variation is called, of a workload whose prompts share so many words."""
    if variation == "other prefix":
        return "nothing shared" if shared_words else "half shared"
    return NAMES[variation]
