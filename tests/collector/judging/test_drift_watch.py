"""Which latencies are watched, what burns, whose doing it is, and what becomes of the rows."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from collector.judging import drift_watch
from collector.judging.drift import ACCEPTED_S, Detector, Minute
from collector.judging.drift_watch import MAX_WATCHED, DriftWatch, Key
from collector.judging.percentiles import PercentileRow
from collector.values.alerting import Alert, AlertKey
from slo.signals import PROMPT_STRATA, TTFT_STRATA
from tests.collector.drift_scene import DRIFT, NOW_S, evaluation, latency, row
from tests.collector.latency_weeks import minutes

KEY: Key = ("", "chat", "m", "ttft", "proxy")
USUAL = minutes(4, days=4)


def learnt(detectors: dict[Key, Detector]) -> dict[Key, Detector]:
    """They know some days up to now."""
    for detector in detectors.values():
        for number, value in enumerate(USUAL):
            detector.learn(Minute(NOW_S - 60 * (len(USUAL) - number), value, 120))
    return detectors


def watching(*, rows: Iterable[PercentileRow] = (), resumed: Iterable[object] = ()) -> DriftWatch:
    watch = DriftWatch(resumed)  # type: ignore[arg-type]
    first = evaluation(NOW_S, [*latency(NOW_S, 0.4), *rows])
    watch.admit(learnt(watch.wanted(first)))
    return watch


def goes_on(
    watch: DriftWatch,
    count: int,
    rows: Callable[[int, float], Iterable[PercentileRow]],
    *,
    first: int = 1,
    alerts: tuple[Alert, ...] = (),
) -> None:
    """So many minutes, of which each says the rows of its moment and its usual value."""
    for number in range(first, first + count):
        at_s = NOW_S + 60 * number
        watch.observe(evaluation(at_s, rows(at_s, USUAL[number]), alerts=alerts))


def slower(factor: float) -> Callable[[int, float], Iterable[PercentileRow]]:
    return lambda at_s, value: latency(at_s, factor * value)


class TestWhom:
    def wanted(self, rows: Iterable[PercentileRow]) -> list[str]:
        found = DriftWatch().wanted(evaluation(NOW_S, rows))
        return [f"{model}/{signal}/{source}" for _, _, model, signal, source in found]

    def test_each_model_signal_and_source_by_itself(self) -> None:
        rows = [
            *latency(NOW_S, 0.4, count=3),
            *latency(NOW_S, 0.4, count=2, source="engine"),
            *latency(NOW_S, 0.4, count=1, signal="tpot"),
            *latency(NOW_S, 0.4, count=4, model="n"),
        ]
        assert self.wanted(rows) == ["n/ttft/proxy", "m/ttft/proxy", "m/ttft/engine", "m/tpot/proxy"]

    @pytest.mark.parametrize(
        "of", [{"model": "*"}, {"model": "other"}, {"signal": TTFT_STRATA["to_1k"]}, {"signal": "queue"}]
    )
    def test_not_what_is_a_mix_by_itself_or_a_part(self, of: dict[str, str]) -> None:
        assert self.wanted(latency(NOW_S, 0.4, **of)) == []

    def test_not_what_nobody_asked_for_in_a_day(self) -> None:
        assert self.wanted(latency(NOW_S, None, count=0)) == []

    def test_the_busiest_as_many_as_there_is_room_for(self) -> None:
        rows = [
            one
            for number in range(MAX_WATCHED + 5)
            for one in latency(NOW_S, 0.4, count=number + 1, model=f"m{number}")
        ]
        found = self.wanted(rows)
        assert len(found) == MAX_WATCHED
        assert found[0] == f"m{MAX_WATCHED + 4}/ttft/proxy"

    def test_looked_for_once_an_hour_and_what_is_watched_stays(self) -> None:
        watch = watching()
        more = [*latency(NOW_S, 0.4, count=1), *latency(NOW_S, 0.4, count=9, model="n")]
        assert watch.wanted(evaluation(NOW_S + 60, more)) == {}
        assert [key[2] for key in watch.wanted(evaluation(NOW_S + 3600, more))] == ["n"]

    def test_those_that_could_not_learn_are_wanted_again(self) -> None:
        watch = DriftWatch()
        first = evaluation(NOW_S, latency(NOW_S, 0.4))
        assert set(watch.wanted(first)) == {KEY}
        watch.forgo()
        assert set(watch.wanted(first)) == {KEY}

    def test_one_that_fell_silent_makes_room(self) -> None:
        watch = watching()
        watch.wanted(evaluation(NOW_S + 3600, ()))
        assert set(watch.wanted(evaluation(NOW_S + 7200, latency(NOW_S, 0.4)))) == {KEY}


class TestRows:
    def test_a_drift_opens_goes_on_and_ends(self) -> None:
        watch = watching()
        goes_on(watch, 30, slower(1))
        assert watch.open == watch.unsaved == ()
        goes_on(watch, 60, slower(1.5), first=31)
        (opened,) = watch.open
        assert opened.latency == KEY
        assert opened.effect == pytest.approx(0.5, abs=0.12)
        assert opened.after_s == pytest.approx(opened.before_s * (1 + opened.effect))
        assert abs(opened.since_s - (NOW_S + 31 * 60)) <= 180
        assert opened.until_s is None
        assert watch.unsaved == (opened,)
        watch.saved(watch.unsaved)
        assert watch.unsaved == ()
        goes_on(watch, 40, slower(1), first=91)
        assert watch.open == ()
        (ended,) = watch.unsaved
        assert (ended.since_s, ended.latency) == (opened.since_s, KEY)
        assert ended.until_s is not None
        assert 90 < (ended.until_s - NOW_S) // 60 < 115

    def test_a_row_that_changed_while_it_was_kept_is_kept_again(self) -> None:
        watch = watching()
        goes_on(watch, 60, slower(1.5))
        before = watch.unsaved
        goes_on(watch, 1, slower(1.5), first=61)
        watch.saved(before)
        assert watch.unsaved == watch.open

    def test_a_minute_is_judged_once(self) -> None:
        watch = watching()
        for number in range(1, 5):
            for second in range(0, 60, 10):
                at_s = NOW_S + 60 * number + second
                watch.observe(evaluation(at_s, latency(at_s, 1.5 * USUAL[number])))
        assert watch.open == ()

    def test_what_is_not_known_is_not_judged(self) -> None:
        watch = watching()
        goes_on(watch, 60, lambda at_s, _: latency(at_s, None))
        assert watch.open == ()

    def test_a_drift_of_before_goes_on(self) -> None:
        before = replace(DRIFT, since_s=NOW_S - 3600, effect=0.5)
        watch = DriftWatch([before])
        assert watch.open == (before,)
        watch.admit(learnt(watch.wanted(evaluation(NOW_S, latency(NOW_S, 0.6)))))
        assert watch.open == (before,)
        goes_on(watch, 30, slower(1.5))
        assert [one.since_s for one in watch.open] == [before.since_s]
        goes_on(watch, 30, slower(1), first=31)
        assert watch.open == ()
        assert [(one.since_s, one.until_s is None) for one in watch.unsaved] == [(before.since_s, False)]

    @pytest.mark.parametrize("is_watched", [True, False])
    def test_one_that_is_heard_of_no_more_ends_all_the_same(self, is_watched: bool) -> None:
        watch = DriftWatch([DRIFT])
        if is_watched:
            watch.admit(learnt(watch.wanted(evaluation(NOW_S, latency(NOW_S, 0.6)))))
        goes_on(watch, 1, lambda *_: (), first=ACCEPTED_S // 60 - 1)
        assert watch.open == (DRIFT,)
        goes_on(watch, 1, lambda *_: (), first=ACCEPTED_S // 60 + 70)
        assert watch.open == ()
        assert [one.until_s for one in watch.unsaved] == [NOW_S + ACCEPTED_S + 70 * 60]


class TestBurning:
    def learnt_minutes(self, alerts: tuple[Alert, ...]) -> int:
        """How many of ten minutes are taken as usual."""

        class Counting(Detector):
            quiet = 0

            def watch(self, minute: Minute) -> None:
                self.quiet += not minute.burning

        watch, counting = DriftWatch(), Counting()
        watch.wanted(evaluation(NOW_S, latency(NOW_S, 0.4)))
        watch.admit({KEY: counting})
        goes_on(watch, 10, slower(1), alerts=alerts)
        return counting.quiet

    @pytest.mark.parametrize(
        ("name", "model", "state", "quiet"),
        [
            ("LLMTTFTBudgetBurn", "m", "firing", 0),
            ("LLMTTFTBudgetBurn", "*", "firing", 0),
            ("LLMTTFTBudgetBurn", "n", "firing", 10),
            ("LLMTTFTBudgetBurn", "m", "pending", 10),
            ("LLMTPOTBudgetBurn", "m", "firing", 10),
            ("LLMLatencyDrift", "m", "firing", 10),
        ],
    )
    def test_a_minute_burns_by_the_burn_alert_of_its_signal(
        self, name: str, model: str, state: str, quiet: int
    ) -> None:
        key = AlertKey(name, "", "chat", model, "ttft", "fast")
        assert self.learnt_minutes((Alert(key, state, 0, 0, (), ()),)) == quiet  # type: ignore[arg-type]

    def test_nothing_burns_without_alerts(self) -> None:
        assert self.learnt_minutes(()) == 10


SHORT, LONG = TTFT_STRATA["to_256"], TTFT_STRATA["to_16k"]


class TestKind:
    def kind(self, now: dict[str, tuple[float, int]], *, minutes: int = 60, signal: str = "ttft") -> str:
        """Half the requests were short and took 0.1 s, the others long and took 0.4 s; what is said of a drift under
        these values and shares."""
        usual = {SHORT: (0.1, 300), LONG: (0.4, 300)}
        watch = watching(rows=latency(NOW_S, 0.4, signal=signal) if signal != "ttft" else ())

        def rows(at_s: int, value: float) -> Iterable[PercentileRow]:
            yield from latency(at_s, 1.5 * value, signal=signal)
            for stratum, (usual_s, _) in usual.items():
                yield row(at_s, usual_s, signal=stratum, window_s=86400)
            for stratum, (now_s, count) in now.items():
                yield row(at_s, now_s, count=count, signal=stratum)
                yield row(at_s, now_s, count=6 * count, signal=stratum, window_s=1800)

        goes_on(watch, minutes, rows)
        (found,) = [one for one in watch.open if one.signal == signal]
        return found.kind

    def test_slower_at_every_length_is_the_server(self) -> None:
        assert self.kind({SHORT: (0.15, 300), LONG: (0.6, 300)}) == "server"

    def test_more_long_prompts_are_the_mix(self) -> None:
        assert self.kind({SHORT: (0.1, 20), LONG: (0.41, 580)}) == "mix"

    def test_nobody_knows_without_lengths_or_of_a_few(self) -> None:
        assert self.kind({}) == "unknown"
        assert self.kind({SHORT: (0.15, 4), LONG: (0.6, 5)}) == "unknown"

    def test_another_signal_is_not_told_apart(self) -> None:
        assert self.kind({SHORT: (0.15, 300), LONG: (0.6, 300)}, signal="tpot") == "unknown"

    def test_the_classes_of_the_table_are_those_asked_for(self) -> None:
        assert list(TTFT_STRATA) == list(PROMPT_STRATA)
        assert drift_watch.WINDOW_S < drift_watch.LONG_WINDOW_S < drift_watch.DAY_S

    def test_what_was_found_stays(self) -> None:
        before = replace(DRIFT, since_s=NOW_S - 60, kind="mix", effect=0.5)
        watch = DriftWatch([before])
        watch.admit(learnt(watch.wanted(evaluation(NOW_S, latency(NOW_S, 0.6)))))
        goes_on(watch, 20, slower(1.5))
        assert [one.kind for one in watch.open] == ["mix"]


def test_the_series_that_are_watched_together_are_counted() -> None:
    rows = [one for number in range(10) for one in latency(NOW_S, 0.4, model=f"m{number}")]
    found = DriftWatch().wanted(evaluation(NOW_S, rows))
    assert {one._limit for one in found.values()} == {10.0 + math.log(10)}
