"""The search for the highest rate that can be certified: a generator that asks for load and hears what came of it.

It holds no clock, no socket and no chance, so the same answers always lead to the same questions: an interrupted search
goes on where it was by being told again what it had heard.

    alone -> flood -> probe, probe, ... -> Outcome

Alone: where single requests already spend half of the budget, no load can be certified with a sane number of requests.
Flood: the rate at which the server answers when it is full, above which every queue grows. Then probes between the
highest certified rate and the lowest one that is not, placed where the share of bad requests, taken as exponential in
the rate, would be a little under the budget. A probe loads from empty until it is refuted, or looks certifiable, or is
seen to be neither within reach; then from overload, and both runs together certify it.
"""

import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from capacity.certify import judge
from capacity.certify.evidence import Evidence
from capacity.certify.judge import Rigour
from capacity.certify.trial import Answer, Ask, AskAlone, AskFlood, AskRun, Ceiling, Goal, Seen, Start, Variation

State = Literal["certified", "refuted", "unresolved"]
FIRST_ALONE, MOST_ALONE = 50, 1600
ALONE_TIME = 0.1
"""The part of the time that requests are sent alone."""
ALONE_PART = 0.5
"""The part of a budget that requests may spend when each is alone on the server."""
AIM_AT = 0.6
"""The part of the budget at which a certificate is sought: near enough to the edge, and still within reach."""
LEAST_STEP = 0.25
"""A probe stays this part of the bracket away from either end, so that each one narrows it."""
STEPS_TO_REACH = 1000
LEAST_PART = 0.02
"""Below this part of the ceiling the search gives up."""
CLOSE_REFUTED = 1.10
"""A refuted rate within this of the certified one is near enough."""
REFUTING_PROBES = 2
NEW_PART = 0.01
GIVEN_UP_FROM = 4
BEYOND_REACH = 2
DOUBT = 1.0
"""A run is given up, from one part in GIVEN_UP_FROM of the most requests on, when it would take BEYOND_REACH times the
most to tell, were its share by DOUBT standard errors further from the budget."""
NOT_RECOVERING = 0.001


@dataclass(frozen=True, slots=True)
class Probe:
    """One rate, judged: `found` holds the evidence for each goal, of all runs where both starts were tried.

    `needs` is about how many requests would have told, where the rate stayed unresolved; `runs` are the numbers asked
    for.
    """

    rate_rps: float
    state: State
    why: str
    found: tuple[Evidence, ...]
    runs: tuple[int, ...]
    needs: float = 0.0


@dataclass(frozen=True, slots=True)
class Varied:
    """A run of another workload at the certified rate: the evidence for each goal."""

    variation: Variation
    found: tuple[Evidence, ...]
    run: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the search has found. Without a certified probe `why_not` says why, and `needs` about how many requests
    would tell, at which rate."""

    goals: tuple[Goal, ...]
    alone: tuple[Evidence, ...]
    ceiling: Ceiling | None
    probes: tuple[Probe, ...]
    why_not: str = ""
    needs: float = 0.0
    needs_at_rps: float = 0.0
    varied: tuple[Varied, ...] = ()

    @property
    def certified(self) -> Probe | None:
        """The highest certified rate."""
        return max(_in_state(self.probes, "certified"), key=_rate, default=None)

    @property
    def refuted(self) -> Probe | None:
        """The lowest refuted rate."""
        return min(_in_state(self.probes, "refuted"), key=_rate, default=None)

    @property
    def unresolved(self) -> Probe | None:
        """The lowest rate above the certified one on which no verdict was reached."""
        least = 0.0 if self.certified is None else self.certified.rate_rps
        above = (probe for probe in _in_state(self.probes, "unresolved") if probe.rate_rps > least)
        return min(above, key=_rate, default=None)


Search = Generator[Ask, Answer, Outcome]


def _rate(probe: Probe) -> float:
    return probe.rate_rps


def _in_state(probes: Iterable[Probe], state: State) -> list[Probe]:
    return [probe for probe in probes if probe.state == state]


def search(goals: tuple[Goal, ...], rigour: Rigour) -> Search:
    """Ask until the bracket is closed, or the allowance of probes or time is spent."""
    assert goals
    return (yield from _Search(goals, rigour).run())


class _Search:
    """A search under way: what was found so far."""

    def __init__(self, goals: tuple[Goal, ...], rigour: Rigour) -> None:
        self._goals = goals
        self._rigour = rigour
        self._ceiling = Ceiling(math.inf, 0, 0)
        self._top = math.inf
        self._alone_s = 0.0
        self._alone: tuple[Evidence, ...] = ()
        self._probes: list[Probe] = []
        self._runs = 0
        self._seconds = 0.0

    def run(self) -> Search:
        too_tight = yield from self._floor()
        if too_tight:
            needs = judge.requests_to_tell(self._goals, self._alone, self._rigour)
            return Outcome(self._goals, self._alone, None, (), too_tight, needs)
        ceiling = yield AskFlood()
        assert isinstance(ceiling, Ceiling)
        self._ceiling = ceiling
        self._top = self._reach()
        while self._may_probe() and (rate_rps := self._next_rate()) is not None:
            yield from self._probe(rate_rps)
        for _ in range(REFUTING_PROBES):
            rate = self._refuting_rate()
            if rate is None or not self._may_probe():
                break
            yield from self._probe(rate, may_certify=False)
        return self._outcome()

    def _outcome(self) -> Outcome:
        whole = Outcome(self._goals, self._alone, self._ceiling, tuple(self._probes))
        if whole.certified is not None:
            return whole
        if not self._probes:
            half_rps = self._ceiling.rate_rps / 2
            needs = 2 * self._least_run(half_rps, judge.least_worth(self._goals, self._rigour))
            return replace(whole, why_not=self._why_no_probe(), needs=needs, needs_at_rps=half_rps)
        lowest = min(self._probes, key=_rate)
        why_not = f"no rate could be certified, down to {lowest.rate_rps:.3g} requests/s: {lowest.why}"
        return replace(whole, why_not=why_not, needs=lowest.needs, needs_at_rps=lowest.rate_rps)

    def _why_no_probe(self) -> str:
        if self._top:
            return "the time was spent before a rate could be probed"
        rigour = self._rigour
        limits = f"{rigour.most_requests} requests" + (
            "" if math.isinf(rigour.most_run_seconds) else f" and {rigour.most_run_seconds:.0f} s"
        )
        return f"runs of at most {limits} are too short to certify any rate"

    def _least_run(self, rate_rps: float, worth: float) -> float:
        at_once = judge.expected_at_once(rate_rps, self._ceiling, self._alone_s)
        return judge.least_run(rate_rps, self._ceiling, at_once, worth, self._rigour)

    def _may_probe(self) -> bool:
        rigour = self._rigour
        is_time_left = self._seconds + rigour.most_run_seconds <= rigour.most_seconds
        return is_time_left and len(self._probes) < rigour.most_probes

    # Alone on the server.

    def _floor(self) -> Generator[Ask, Answer, str]:
        """See how requests fare alone; why nothing can be certified, or nothing."""
        half = tuple(Goal(goal.name, goal.budget * ALONE_PART, goal.is_watched) for goal in self._goals)
        requests, error = FIRST_ALONE, self._rigour.error / 6
        while True:
            seen = yield AskAlone(requests)
            assert isinstance(seen, Seen)
            self._alone = judge.by_goal([seen])
            is_last = requests >= MOST_ALONE or seen.seconds > ALONE_TIME * self._rigour.most_seconds
            over = judge.refuted_by(half, self._alone, error=float(len(half)) if is_last else error)
            is_clear = over is None and judge.is_shown_within(self._goals, self._alone, error=self._rigour.error)
            if over is not None or is_clear or is_last:
                self._seconds += seen.seconds
                self._alone_s = seen.seconds / seen.requests
                return "" if over is None else self._too_tight(over)
            requests *= 2

    def _too_tight(self, name: str) -> str:
        place = next(place for place, goal in enumerate(self._goals) if goal.name == name)
        share, budget = self._alone[place].share, self._goals[place].budget
        return (
            f"requests that are alone on the server already miss {name} in {share:.2%} of cases, of {budget:.2%} "
            "allowed: no load can be certified on what is left"
        )

    # Where to probe.

    def _reach(self) -> float:
        """The highest rate that can be certified at all by runs as long as they may be; 0 where none can."""
        ceiling, rigour = self._ceiling, self._rigour
        worth = judge.least_worth(self._goals, rigour)
        for step in range(STEPS_TO_REACH, 0, -1):
            rate_rps = ceiling.rate_rps * step / STEPS_TO_REACH
            most = min(rigour.most_requests, rate_rps * rigour.most_run_seconds)
            if self._least_run(rate_rps, worth) <= most:
                return rate_rps
        return 0.0

    def _bracket(self) -> tuple[float, float]:
        """The highest certified rate, or 0, and the lowest that is not certified, or the ceiling."""
        low = max((probe.rate_rps for probe in _in_state(self._probes, "certified")), default=0.0)
        others = (probe.rate_rps for probe in self._probes if probe.state != "certified")
        return low, min(others, default=self._top)

    def _next_rate(self) -> float | None:
        """The next rate to probe; None when the bracket is closed, or a run at that rate would take too long."""
        low, top = self._bracket()
        gap, tolerance = top - low, self._rigour.tolerance
        if gap <= tolerance * top or top <= LEAST_PART * self._top:
            return None
        rate_rps = low + gap / 2
        if not low or gap > 2 * tolerance * top:
            rate_rps = min(max(self._guess(low, top), low + LEAST_STEP * gap), top - LEAST_STEP * gap)
        return rate_rps if rate_rps * self._rigour.most_run_seconds >= judge.FIRST_LOOK else None

    def _guess(self, low: float, top: float) -> float:
        """Where the binding share would be at the aim, were it exponential in the rate."""
        points = {probe.rate_rps: self._part_spent(probe.found) for probe in self._probes}
        if low not in points:
            points[low] = self._part_spent(self._alone)
        if top not in points:
            return low + AIM_AT * (top - low)
        below, above = math.log(points[low]), math.log(points[top])
        if above <= below:
            return (low + top) / 2
        aim = max(math.log(AIM_AT), below / 2)  # once nearer than the aim, half of the rest of the way
        return low + (top - low) * (aim - below) / (above - below)

    def _part_spent(self, found: tuple[Evidence, ...]) -> float:
        """The part of its budget that the binding objective spends, kept from zero."""
        return max(
            (one.bad + 0.5) / (one.requests + 1) / goal.budget for goal, one in zip(self._goals, found, strict=True)
        )

    def _refuting_rate(self) -> float | None:
        """A rate that would bring the refuted one near the certified; None where it is, or nothing is certified."""
        low, top = self._bracket()
        refuted = min((probe.rate_rps for probe in _in_state(self._probes, "refuted")), default=math.inf)
        near = CLOSE_REFUTED * low
        if not low or refuted <= near:
            return None
        probed = [probe.rate_rps for probe in self._probes]
        if refuted == math.inf:
            return CLOSE_REFUTED * max(probed)
        rate_rps = max(min(near, (top + refuted) / 2), top + LEAST_STEP * (refuted - top))
        is_new = all(abs(rate_rps - other) > NEW_PART * other for other in probed)
        return rate_rps if is_new else (rate_rps + refuted) / 2

    # One probe.

    def _probe(self, rate_rps: float, *, may_certify: bool = True) -> Generator[Ask, Answer, None]:
        empty = self._run(rate_rps, "empty")
        state, why = yield from self._from_empty(empty, may_certify=may_certify)
        runs = [empty]
        if state is None:
            loaded = self._run(rate_rps, "overload")
            runs.append(loaded)
            state, why = yield from self._from_overload(loaded, empty)
        found = judge.by_goal([run.heard for run in runs])
        needs = self._requests_to_tell(runs) if state == "unresolved" else 0.0
        self._seconds += sum(run.heard.seconds for run in runs)
        self._probes.append(Probe(rate_rps, state, why, found, tuple(run.number for run in runs), needs))

    def _run(self, rate_rps: float, start: Start) -> "_Run":
        self._runs += 1
        return _Run(self._runs, rate_rps, start)

    def _from_empty(self, run: "_Run", *, may_certify: bool) -> Generator[Ask, Answer, tuple[State | None, str]]:
        """Load an empty server until something is clear; no state where an overloaded one is to be tried."""
        goals, rigour = self._goals, self._rigour
        spent = 0.0
        looks = judge.looks(run.rate_rps, rigour)
        for requests in looks:
            yield from run.go_on(requests)
            found = judge.by_goal([run.heard])
            allowed = judge.spent_refuting(requests / looks[-1], rigour)
            half = (allowed - spent) / 2
            over = judge.refuted_by(goals, found, error=half) or judge.refuted_by(
                goals, judge.later_half(run.heard), error=half
            )
            spent = allowed
            if over is not None and (judge.can_see(run.heard, rigour) or run.rate_rps >= self._ceiling.rate_rps):
                return self._unless_late(run, over)
            if may_certify and judge.is_long_enough(run.heard, self._relaxation(run), rigour):
                error = self._allowance() * judge.spent_certifying(requests / looks[-1], rigour)
                if judge.is_shown_within(goals, [one.twice() for one in self._clumped([run])], error=error):
                    return None, ""
            is_late_enough = requests >= looks[-1] / GIVEN_UP_FROM
            if is_late_enough and over is None and self._is_beyond_reach(run, looks[-1]):
                return "unresolved", "the edge of the budget is too near to tell"
        return "unresolved", "a run as long as it may be did not tell"

    def _unless_late(self, run: "_Run", over: str) -> tuple[State, str]:
        if run.heard.is_client_late:
            return "unresolved", f"over the budget of {over}, but the client itself was late"
        return "refuted", f"over the budget of {over}"

    def _from_overload(self, run: "_Run", empty: "_Run") -> Generator[Ask, Answer, tuple[State, str]]:
        """Load a server that begins with a queue, until both runs together certify the rate, or never will."""
        goals, rigour = self._goals, self._rigour
        relaxation = self._relaxation(empty)
        spent = 0.0
        looks = judge.looks(run.rate_rps, rigour)
        for requests in looks:
            if requests < min(rigour.relaxations * relaxation, looks[-1]):
                continue
            yield from run.go_on(requests)
            if not judge.is_long_enough(run.heard, relaxation, rigour):
                continue
            own = judge.by_goal([run.heard])
            part = (empty.heard.requests + requests) / (2 * looks[-1])
            allowed = self._allowance() * judge.spent_certifying(part, rigour)
            both = self._clumped([empty, run])
            if judge.are_within(goals, own) and judge.is_shown_within(goals, both, error=allowed - spent):
                return "certified", "within every budget from either start"
            spent = allowed
            if judge.refuted_by(goals, own, error=NOT_RECOVERING) is not None:
                return "unresolved", "it keeps to the budget from empty, but does not recover from overload"
        return "unresolved", "a run as long as it may be did not tell"

    # How much a probe's runs say.

    def _allowance(self) -> float:
        """The part of the allowed error that a further certificate may use, after probes that told nothing.

        Where the share hardly depends on the rate there could be many of these, each with its chance to err: halved
        each time, all chances together stay under twice the allowed error.
        """
        return 0.5 ** len(_in_state(self._probes, "unresolved"))

    def _relaxation(self, run: "_Run") -> float:
        return judge.relaxation(run.rate_rps, self._ceiling, run.heard.at_once)

    def _clumped(self, runs: list["_Run"]) -> tuple[Evidence, ...]:
        """The evidence of runs, the first from empty, where bad requests may come as long as it remembers."""
        return judge.by_goal([run.heard for run in runs], clump=judge.clump(self._relaxation(runs[0])))

    def _requests_to_tell(self, runs: list["_Run"], *, doubt: float = 0.0) -> float:
        tell = judge.requests_to_tell(self._goals, self._clumped(runs), self._rigour, doubt=doubt)
        return max(tell, 2 * judge.least_requests(runs[0].rate_rps, self._relaxation(runs[0]), self._rigour))

    def _is_beyond_reach(self, run: "_Run", most: int) -> bool:
        found = judge.by_goal([run.heard])
        if judge.are_within(self._goals, found):
            return self._requests_to_tell([run], doubt=DOUBT) > BEYOND_REACH * most
        return judge.requests_to_tell(self._goals, found, self._rigour, doubt=DOUBT) > BEYOND_REACH * most


class _Run:
    """A run as the search asks for more of it."""

    def __init__(self, number: int, rate_rps: float, start: Start) -> None:
        self.number = number
        self.rate_rps = rate_rps
        self.heard = Seen((), 0.0, 0.0)
        self._start = start

    def go_on(self, requests: int) -> Generator[Ask, Answer, None]:
        """Ask for the run up to so many requests."""
        heard = yield AskRun(self.number, self.rate_rps, self._start, requests)
        assert isinstance(heard, Seen)
        self.heard = heard
