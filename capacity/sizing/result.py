"""The result of a sizing: as JSON, as one sentence, and what should make its reader careful."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from capacity.sizing.demand import Demand
from capacity.sizing.measured import Measured
from capacity.sizing.replica import Replica, works
from capacity.sizing.sized import Sized, Terms, gpu_hours
from slo.quantity import MINUTE_S

ALIKE = 0.2
HALF_USED = 0.5
LEAST_SPAN_S = 50 * MINUTE_S


@dataclass(frozen=True, slots=True)
class Result:
    """An answer with all that it rests on; `left_out` are objectives that say nothing here, and why, and `doubts` what
    speaks against the capacity."""

    sized: Sized
    demand: Demand
    measured: Measured
    replica: Replica
    terms: Terms
    left_out: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def gpu_hours(self) -> Mapping[str, float]:
        return gpu_hours(self.sized, self.demand, self.terms)

    @property
    def work(self) -> float:
        """How much work a mean request of the demand is, in units of those that the capacity was certified with."""
        return float(works(self.demand, self.measured).mean())

    @property
    def load_at_peak(self) -> float:
        """The part of what the needed replicas are certified for that the demand is at its peak."""
        found = self.sized
        return found.peak.peak_rps * self.work / (found.needed * self.measured.certified_rps)

    @property
    def is_for_bursts(self) -> bool:
        """Whether more replicas are needed than twice what the load of the peak takes."""
        return self.load_at_peak < HALF_USED and self.sized.needed > 1

    def sentence(self) -> str:
        """The answer in words."""
        found, spare = self.sized, self.terms.spare
        with_spare = f", {spare} of them spare" if spare else ""
        return (
            f"{found.replicas} replicas{with_spare}: {found.by_replay} by replay of {Path(self.demand.source).name}, "
            f"{found.by_peak} by its peak; Poisson would have said {found.by_poisson}"
        )

    def said(self) -> dict[int, str]:
        """What each number of replicas is the answer of."""
        found = self.sized
        answers = (
            (found.by_poisson, "Poisson"),
            (found.by_replay, "replay"),
            (found.by_peak, "peak"),
            (found.replicas, "with spare" if self.terms.spare else "the answer"),
        )
        said: dict[int, str] = {}
        for number, word in answers:
            said[number] = f"{said[number]}, {word}" if number in said else word
        return said

    def warnings(self) -> Iterator[str]:
        """What should make a reader careful."""
        known = self.measured
        yield from self.doubts
        if known.stay_s is None:
            yield "the capacity was given by hand, so how long requests stay is guessed from the objectives"
        if known.refuted_rps is None:
            yield "nothing says how sure the capacity is: a fifth is held back for that"
        work = self.work
        if abs(work - 1) > ALIKE:
            yield (
                f"requests here are {work:.2g} times the work of those that the capacity was certified with: "
                "certify with this demand as --workload"
            )
        if known.mean_tokens is not None and not self.demand.tokens:
            yield "the demand does not say how long its requests are: they are taken for those of the certificate"
        if self.demand.span_s < LEAST_SPAN_S:
            yield f"{self.demand.span_s / MINUTE_S:.0f} minutes of demand say little of its peaks"
        if self.is_for_bursts:
            yield (
                "bursts and no lasting load ask for so many: at its peak the demand is "
                f"{self.load_at_peak:.0%} of what {self.sized.needed} replicas are certified for"
            )
        if self.demand.note:
            yield self.demand.note

    def as_json(self, settings: Mapping[str, object]) -> dict[str, object]:
        found, known = self.sized, self.measured
        return {
            "verdict": "sized",
            "says": self.sentence(),
            "replicas": found.replicas,
            "needed_replicas": found.needed,
            "replay_replicas": found.by_replay,
            "peak_replicas": found.by_peak,
            "poisson_replicas": found.by_poisson,
            "spare": self.terms.spare,
            "headroom": found.peak.headroom,
            "load_at_peak": self.load_at_peak,
            "binding": found.binding,
            "peak_concurrency": found.peak.at_once,
            "certified_rps": known.certified_rps,
            "refuted_rps": known.refuted_rps,
            "demand": {
                "source": self.demand.source,
                "requests": int(self.demand.times_s.size),
                "seconds": self.demand.span_s,
                "mean_tokens": self.demand.mean_tokens,
                **asdict(found.peak),
            },
            "gpu_hours": dict(self.gpu_hours),
            "replica": {
                "places": self.replica.places,
                "stay_s": self.replica.stay_s,
                "capacity": {name: value for name, value in asdict(known).items() if name != "promised"},
                "objectives": [asdict(one) for one in self.replica.allowed],
            },
            "candidates": [asdict(one) for one in found.candidates],
            "left_out": list(self.left_out),
            "warnings": list(self.warnings()),
            "terms": asdict(self.terms),
            "settings": dict(settings),
        }
