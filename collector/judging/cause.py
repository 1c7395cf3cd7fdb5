"""Why a budget burns: the evidence of the burn against that of a time before it, when nothing burned. Pure.

Each candidate looks at the figures that it alone moves and says how sure it is, from 0 to 1, with sentences that say
why. They are asked in an order in which what explains others stands before what it explains: a hung engine also queues,
a throttled GPU also decodes slower, preemption also lengthens every token, and a queue grows behind every slow engine.
The first that is sure enough is the cause, and the symptoms of later ones are not held against it. When none is, the
cause is unknown, which is an answer too: a wrong one costs its reader more than none.

Cause and effect turn round in one place: more requests at once make each token slower, and slower tokens keep more
requests at once (Little's law). So what runs is never held to explain slower tokens; what was asked for is: requests
and the tokens they want, which no server changes.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from collector.judging.evidence import Evidence
from collector.values import words

Kind = Literal[
    "gpu_lost",
    "unreachable",
    "engine_hung",
    "errors",
    "gpu_throttled",
    "kv_pressure",
    "admission",
    "slow_clients",
    "batch",
    "decode_slower",
    "long_prompts",
    "traffic",
    "queue",
    "unknown",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
TITLES: Mapping[Kind, str] = {
    "gpu_lost": "a GPU is lost",
    "unreachable": "the server cannot be reached",
    "engine_hung": "the engine hangs",
    "errors": "requests fail",
    "gpu_throttled": "a GPU is throttled",
    "kv_pressure": "the KV cache is full",
    "admission": "the engine admits next to nothing",
    "slow_clients": "answers are held up between the engine and its clients",
    "decode_slower": "each token takes longer, whatever the batch",
    "long_prompts": "prompts became longer",
    "traffic": "traffic grew",
    "batch": "more requests run at once, and each token takes longer for it",
    "queue": "requests queue",
    "unknown": "unknown",
}
SURE = 0.6
"""From here on a candidate is the cause."""
HUNG_S, SURELY_HUNG_S = 3.0, 6.0
"""Without a token of any request in flight: from where on a hang is thought of, and taken for one."""
SILENT_S = 0.5
"""An engine's page that was read as its sidecar last told of itself was read within this."""
FULL = 0.9
"""Of the KV cache."""
MOST_APART = 50
"""Instances that are looked at one by one."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What burns a budget, how sure that is (0 to 1), and the sentences that say why; of an unknown one, what was
    thought of. `instance` names the one that it is alone with."""

    kind: Kind
    confidence: float
    evidence: tuple[str, ...] = ()
    instance: str = ""

    @property
    def text(self) -> str:
        """All of it in one line."""
        if self.kind == "unknown":
            return f"unknown{_listed(self.evidence)}"
        where = f" (instance {self.instance} alone)" if self.instance else ""
        return f"{TITLES[self.kind]}{where}, {words.share(self.confidence)} sure{_listed(self.evidence)}"


@dataclass(frozen=True, slots=True)
class Compared:
    """The two sides: before the burn, and during it."""

    before: Evidence
    during: Evidence

    def now(self, name: str) -> float:
        """The figure during the burn; 0 when it is unknown."""
        return getattr(self.during, name) or 0.0

    def was(self, name: str) -> float:
        """The same before."""
        return getattr(self.before, name) or 0.0

    def rise(self, name: str) -> float:
        """By how much it rose."""
        return self.now(name) - self.was(name)

    def times(self, name: str, *, least: float = 1e-9) -> float | None:
        """How many times what it was; None when either is unknown. Below `least` nothing can be doubled."""
        before, during = getattr(self.before, name), getattr(self.during, name)
        return None if before is None or during is None else max(during, least) / max(before, least)

    def grew(self, name: str, times: float, *, least: float = 1e-9) -> bool:
        """Whether it is so many times what it was."""
        ratio = self.times(name, least=least)
        return ratio is not None and ratio >= times

    def told(self, name: str, what: str, show: Callable[[float | None], str]) -> str:
        """The figure in words: `what` now, and before."""
        return f"{what} {show(getattr(self.during, name))}, before {show(getattr(self.before, name))}"


_Found = tuple[float, tuple[str, ...]] | None
"""How sure, and why; None where the figures that would tell are unknown."""


def attribute(before: Evidence, during: Evidence) -> Cause:
    """The cause that the evidence speaks for, or `unknown` with what came nearest."""
    compared, nearest = Compared(before, during), Cause("unknown", 0.0)
    for kind, look in CANDIDATES.items():
        found = look(compared)
        if found is None:
            continue
        # A queue stands behind whatever else is wrong: it is the cause only where nothing else comes near.
        sure = found[0] * (1 - _share(nearest.confidence, 0.0, 0.4)) if kind == "queue" else found[0]
        cause = Cause(kind, round(sure, 2), found[1])
        if cause.confidence >= SURE:
            return cause
        nearest = max(nearest, cause, key=lambda one: one.confidence)
    if not nearest.confidence:
        return nearest
    return Cause("unknown", nearest.confidence, (f"nearest is: {TITLES[nearest.kind]}", *nearest.evidence))


def attribute_apart(
    before: Mapping[str, Evidence], during: Mapping[str, Evidence], *, together: tuple[Evidence, Evidence]
) -> Cause:
    """The cause over all instances, with the name of the one that it is alone with; where it is unknown, the surest of
    any single one. `together` are before and during over all of them; an instance that is new has what was usual of
    them all before it."""
    whole = attribute(*together)
    if not 1 < len(during) <= MOST_APART:
        return whole
    single = [
        replace(attribute(before.get(instance, together[0]), found), instance=instance)
        for instance, found in sorted(during.items())
    ]
    if whole.kind != "unknown":
        same = [cause.instance for cause in single if cause.kind == whole.kind]
        return replace(whole, instance=same[0]) if len(same) == 1 else whole
    known = [cause for cause in single if cause.kind != "unknown"]
    return max(known, key=lambda cause: cause.confidence, default=whole)


def _gpu_lost(of: Compared) -> _Found:
    if of.during.gpu_lost is None:
        return None
    lost = of.now("gpu_lost")
    return (1.0 if lost > of.was("gpu_lost") else 0.0), (f"{words.count(lost)} off the bus or waiting for a reset",)


def _unreachable(of: Compared) -> _Found:
    """Requests fail, and the engine does not even show its page."""
    heard = of.during.heard
    if heard is None or of.was("heard") < 0.5:
        return None
    is_silent = of.was("unheard_s") < SILENT_S <= of.now("unheard_s")
    silent = max(_share(of.was("heard") - heard, 0.05, 0.25), 0.8 if is_silent else 0.0)
    return silent * _share(of.now("failed"), 0.05, 0.2), (
        of.told("failed", "failed", words.share),
        of.told("heard", "its own page was read", words.share),
    )


def _hung(of: Compared) -> _Found:
    """No token for anybody who waits for one; and it is not for want of memory that nothing runs."""
    age_s = of.during.token_age_s
    is_full = of.during.running is not None and of.now("running") < 0.5 and of.now("kv_occupancy") >= FULL
    if age_s is None or is_full:
        return None
    usual_s = max(of.was("longest_gap_s"), 20 * of.was("tpot_s"))
    sure = _share(age_s, max(HUNG_S, 3 * usual_s), max(SURELY_HUNG_S, 6 * usual_s))
    return sure, (
        f"no token for {words.latency(age_s)}, before at most for {words.latency(of.before.longest_gap_s)}",
        f"{words.count(of.now('running'))} running, {words.count(of.now('unstarted'))} without a first token",
    )


def _errors(of: Compared) -> _Found:
    if of.during.failed is None:
        return None
    rise = of.rise("failed") + of.rise("refused")
    return _share(rise, 0.005, 0.05), (
        of.told("failed", "failed", words.share),
        of.told("refused", "refused", words.share),
    )


def _throttled(of: Compared) -> _Found:
    if of.during.throttled is None:
        return None
    return _share(of.rise("throttled"), 0.05, 0.3), (of.told("throttled", "held back of the time", words.share),)


def _kv_pressure(of: Compared) -> _Found:
    """Sequences are preempted over and over, or each that runs takes more of the cache than it did while others wait. A
    full cache alone is no fault: more may run in it than before; and one that is full of longer prompts is theirs."""
    if of.during.kv_occupancy is None:
        return None
    arrivals = max(of.now("arrivals"), 0.1)
    preempted = _share(of.rise("preemptions") / arrivals, 0.02, 0.2)
    of_each = _share(_memory_of_each(of), 1.3, 2.0)
    # Memory that no sequence took will be short soon where it is not yet.
    full = _share(of.now("kv_occupancy"), *((0.6, 0.8) if of_each == 1 else (FULL - 0.1, FULL + 0.03)))
    starved = full * of_each * _share(max(of.now("waiting"), of.now("unstarted")), 0.3, 1.5)
    return max(preempted * max(full, 0.7), starved) * _same_prompts(of), (
        of.told("kv_occupancy", "occupied", words.share),
        of.told("preemptions", "preemptions a second", _rate),
        of.told("running", "running", _rate),
        of.told("waiting", "waiting", _rate),
    )


def _admission(of: Compared) -> _Found:
    """Somebody waits, there is room, and next to nothing runs; prompts that became longer fill a step with fewer."""
    if of.during.running is None or of.during.waiting is None or of.now("kv_occupancy") >= FULL:
        return None
    lone = of.now("running") <= 1.3 and of.now("waiting") >= 2 * of.now("running")
    fewer = _share(1 - of.now("running") / max(of.was("running"), 0.1), 0.2, 0.5) if of.was("running") >= 1 else 0.0
    room = 1 - _share(of.rise("kv_occupancy"), 0.1, 0.3)
    return max(float(lone), fewer) * _share(of.now("waiting"), 0.5, 1.5) * _same_prompts(of) * room, (
        of.told("running", "running", _rate),
        of.told("waiting", "waiting", _rate),
        of.told("oldest_s", "the oldest without a token for", words.latency),
        of.told("kv_occupancy", "KV cache occupied", words.share),
    )


def _slow_clients(of: Compared) -> _Found:
    """We see answers take longer than the engine says that it takes for them."""
    ours, engines = of.times("tpot_s"), of.times("engine_tpot_s")
    if ours is None or engines is None:
        return None
    more_s = of.rise("tpot_s") - max(of.rise("engine_tpot_s"), 0.0)
    sure = _share(ours / max(engines, 1.0), 1.2, 1.6) * _share(more_s / max(of.was("tpot_s"), 1e-9), 0.2, 0.5)
    # Of the same answers: who counts them a little later may speak of others.
    few, many = sorted((of.now("answers"), of.now("engine_answers")))
    same = _share(few, 3, 10) * _share(few / max(many, 1.0), 0.6, 0.8)
    return sure * same, (
        of.told("tpot_s", "time per token as seen here", words.latency),
        of.told("engine_tpot_s", "by the engine itself", words.latency),
    )


def _batch(of: Compared) -> _Found:
    """More run at once while fewer wait for it: who let them in made each token slower."""
    running, tpot = of.times("running", least=1.0), of.times("tpot_s")
    if running is None or tpot is None or of.was("waiting") < 1:
        return None
    drained = _share(-of.rise("waiting") / of.was("waiting"), 0.1, 0.3)
    return min(_share(running, 1.2, 1.6), _share(tpot, 1.05, 1.3), drained), (
        of.told("running", "running", _rate),
        of.told("waiting", "waiting", _rate),
        of.told("tpot_s", "time per token", words.latency),
    )


def _decode_slower(of: Compared) -> _Found:
    """Each token takes longer than what is asked for explains. What slow requests took is only known when they end; at
    first the gaps between tokens alone show it."""
    if of.times("tpot_s") is None and of.times("token_gap_s") is None:
        return None
    return max(_share(_unexplained(of), 1.1, 1.4), 0.8 * _share(_wider_gaps(of), 1.5, 2.5)), (
        of.told("tpot_s", "time per token", words.latency),
        of.told("token_gap_s", "time since any token", words.latency),
        of.told("arrivals", "requests a second", _rate),
        of.told("running", "running", _rate),
    )


def _long_prompts(of: Compared) -> _Found:
    longer = of.times("in_tokens")
    if longer is None or not (of.grew("ttft_s", 1.2) or of.grew("tpot_s", 1.2) or of.grew("unstarted", 1.5, least=1)):
        return None
    return _share(longer, 1.2, 1.6), (
        of.told("in_tokens", "prompt tokens of a request", words.count),
        of.told("ttft_s", "time to first token", words.latency),
    )


def _traffic(of: Compared) -> _Found:
    """More is asked for, beyond chance, and it shows: more run, or more wait. Tokens that are slower than that explains
    speak against it."""
    busier = of.grew("running", 1.2, least=1.0) or of.rise("waiting") >= 0.5 or of.rise("unstarted") >= 0.5
    if of.times("arrivals") is None or not busier:
        return None
    beyond_chance = _share(of.rise("came") / math.sqrt(max(of.was("came") + of.now("came"), 1.0)), 2.0, 4.0)
    longer = _share(of.times("out_tokens") or 1.0, 1.15, 1.4)
    explained = 1 - max(_share(_unexplained(of), 1.0, 1.3), _share(_wider_gaps(of), 1.2, 2.0))
    return _share(_demand(of), 1.15, 1.4) * max(beyond_chance, longer) * explained, (
        of.told("arrivals", "requests a second", _rate),
        of.told("out_tokens", "tokens of an answer", words.count),
        of.told("running", "running", _rate),
        of.told("waiting", "waiting", _rate),
    )


def _queue(of: Compared) -> _Found:
    """A queue, and none of the above behind it."""
    if of.during.waiting is None:
        return None
    return _share(of.rise("waiting"), 0.5, 3.0) * (1 - _share(_demand(of), 1.1, 1.3)), (
        of.told("waiting", "waiting", _rate),
        of.told("oldest_s", "the oldest without a token for", words.latency),
        of.told("running", "running", _rate),
    )


CANDIDATES: Mapping[Kind, Callable[[Compared], _Found]] = {
    "gpu_lost": _gpu_lost,
    "unreachable": _unreachable,
    "engine_hung": _hung,
    "errors": _errors,
    "gpu_throttled": _throttled,
    "kv_pressure": _kv_pressure,
    "admission": _admission,
    "slow_clients": _slow_clients,
    "batch": _batch,
    "decode_slower": _decode_slower,
    "long_prompts": _long_prompts,
    "traffic": _traffic,
    "queue": _queue,
}
"""What looks for each cause, the ones that explain others first."""


def _demand(of: Compared) -> float:
    """How many times what was asked for before: tokens to be generated a second. Never below 1."""
    arrivals, out_tokens = of.times("arrivals"), of.times("out_tokens")
    return max((arrivals or 1.0) * max(out_tokens or 1.0, 1.0), 1.0)


def _unexplained(of: Compared) -> float:
    """How many times as long a token takes as more to do could make it: at most in proportion. 1 when unknown."""
    return (of.times("tpot_s") or 1.0) / (_demand(of) * max(of.times("in_tokens") or 1.0, 1.0))


def _wider_gaps(of: Compared) -> float:
    """How many times as long engines go without any token, beyond what more to do could make it; 1 when unknown."""
    return (of.times("token_gap_s", least=0.005) or 1.0) / (_demand(of) * max(of.times("in_tokens") or 1.0, 1.0))


def _same_prompts(of: Compared) -> float:
    """How sure it is that prompts did not become longer; unknown, they did not."""
    return 1 - _share(of.times("in_tokens") or 1.0, 1.2, 1.6)


def _memory_of_each(of: Compared) -> float:
    """How many times as much of the KV cache is taken for each sequence that runs; 1 when unknown."""
    occupied, running = of.times("kv_occupancy", least=0.01), of.times("running", least=0.1)
    return 1.0 if occupied is None or running is None else occupied / running


def _share(value: float, none: float, full: float) -> float:
    """Where a value lies between `none`, which says nothing, and `full`, which says all: 0 to 1."""
    return min(max((value - none) / (full - none), 0.0), 1.0)


def _rate(value: float | None) -> str:
    return words.UNKNOWN if value is None else f"{value:.3g}"


def _listed(sentences: tuple[str, ...]) -> str:
    return f": {'; '.join(sentences)}" if sentences else ""
