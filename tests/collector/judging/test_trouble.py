"""Stalled engines and absent telemetry: what rings, what does not, and what ends it."""

import pytest

from collector.judging import trouble
from collector.values.alerting import Alert, AlertKey
from collector.values.deltas import Deltas
from collector.windowing.windows import Windows
from slo.signals import LAST_TOKEN_AGE, OVERDUE
from slo.trouble import ENGINE_STALLED, TELEMETRY_ABSENT
from tests.collector import scene
from tests.collector.scene import NOW_S

OVERDUE_NAME, AGE_NAME = OVERDUE.sql, LAST_TOKEN_AGE.sql
STALLED = AlertKey(ENGINE_STALLED, "", "chat")
ABSENT = AlertKey(TELEMETRY_ABSENT, "", "chat")
PARTIAL = AlertKey(TELEMETRY_ABSENT, "", "chat", tier=trouble.PARTIAL)


def rings(windows: Windows, alerts: dict[AlertKey, Alert] | None = None) -> set[AlertKey]:
    return {one.key for one in trouble.wanted(windows, alerts=alerts or {}, now_s=windows.now_s)}


def running(*gauges: tuple[str, float, str, str], text: str = scene.TTFT) -> Windows:
    """A live service whose sidecars just said some (name, value, attribute, instance)."""
    windows = scene.windows(text)
    windows.add(scene.live(NOW_S - 600, NOW_S))
    rows = tuple(
        scene.gauge(name, value, at_s=NOW_S, attribute=attribute, instance=instance, model="m" if attribute else "")
        for name, value, attribute, instance in gauges
    )
    windows.add(Deltas(gauges=rows))
    return windows


class TestStalled:
    @pytest.mark.parametrize(
        ("overdue", "age", "rings_"), [(3, 60, True), (2, 600, False), (3, 59.9, False), (300, 600, True)]
    )
    def test_it_takes_three_overdue_and_a_minute_without_a_token(
        self, overdue: float, age: float, rings_: bool
    ) -> None:
        windows = running((OVERDUE_NAME, overdue, "ttft", "i1"), (AGE_NAME, age, "", "i1"))
        assert rings(windows) == ({STALLED} if rings_ else set())

    def test_a_request_overdue_twice_is_one_request(self) -> None:
        windows = running((OVERDUE_NAME, 2, "ttft", "i1"), (OVERDUE_NAME, 2, "e2e", "i1"), (AGE_NAME, 90, "", "i1"))
        assert rings(windows) == set()

    @pytest.mark.parametrize(("ttft", "e2e"), [(9, 4), (4, 9)])
    def test_the_larger_count_of_the_two_is_told(self, ttft: float, e2e: float) -> None:
        windows = running(
            (OVERDUE_NAME, ttft, "ttft", "i1"), (OVERDUE_NAME, e2e, "e2e", "i1"), (AGE_NAME, 90, "", "i1")
        )
        (one,) = trouble.wanted(windows, alerts={}, now_s=NOW_S)
        assert "i1 (9 overdue)" in dict(one.annotations)["description"]

    def test_models_of_one_engine_are_added(self) -> None:
        windows = running((OVERDUE_NAME, 2, "ttft", "i1"), (AGE_NAME, 90, "", "i1"))
        other = scene.gauge(OVERDUE_NAME, 1, at_s=NOW_S, attribute="ttft", model="n")
        windows.add(Deltas(gauges=(other,)))
        assert rings(windows) == {STALLED}

    def test_one_engine_queues_and_another_is_silent(self) -> None:
        windows = running((OVERDUE_NAME, 9, "ttft", "i1"), (AGE_NAME, 0.1, "", "i1"), (AGE_NAME, 900, "", "i2"))
        assert rings(windows) == set()

    def test_it_ends_with_a_token_or_when_nothing_is_heard_any_more(self) -> None:
        windows = running((OVERDUE_NAME, 9, "ttft", "i1"), (AGE_NAME, 90, "", "i1"))
        windows.add(Deltas(gauges=(scene.gauge(AGE_NAME, 0.5, at_s=NOW_S + 10),)))
        assert rings(windows) == set()
        silent = running((OVERDUE_NAME, 9, "ttft", "i1"), (AGE_NAME, 90, "", "i1"))
        silent.advance(NOW_S + 70)
        assert rings(silent) == set()

    def test_it_pages_the_service_and_names_the_engine_in_words_alone(self) -> None:
        windows = running((OVERDUE_NAME, 9, "ttft", "i1"), (AGE_NAME, 90, "", "i1"))
        (one,) = trouble.wanted(windows, alerts={}, now_s=NOW_S)
        assert dict(one.labels) == {
            "alertname": "LLMEngineStalled",
            "service_name": "chat",
            "severity": "critical",
            "notify": "page",
        }
        assert "i1 (9 overdue)" in dict(one.annotations)["description"]


class TestAbsent:
    def silent(self, seconds: int, text: str = scene.TTFT) -> Windows:
        windows = running(text=text)
        windows.advance(NOW_S + seconds)
        return windows

    @pytest.mark.parametrize(
        ("seconds", "rings_"), [(0, False), (299, False), (300, True), (86400, True), (3 * 86400, False)]
    )
    def test_five_minutes_of_silence_ring_until_the_service_is_forgotten(self, seconds: int, rings_: bool) -> None:
        assert rings(self.silent(seconds)) == ({ABSENT} if rings_ else set())

    def test_an_elastic_service_may_be_silent(self) -> None:
        assert rings(self.silent(900, "elastic: true\n" + scene.TTFT)) == set()

    def test_so_may_one_that_never_spoke_on_its_own(self) -> None:
        windows = scene.windows()
        windows.add(Deltas(known=scene.known(NOW_S - 600, NOW_S)))
        windows.advance(NOW_S + 900)
        assert rings(windows) == set()

    def test_a_service_of_no_spec_and_one_of_another_environment_are_nobodys_alarm(self) -> None:
        assert rings(self.silent(900, scene.TTFT.replace("chat", "search"))) == set()
        assert rings(self.silent(900, "environment: prod\n" + scene.TTFT)) == set()

    def test_a_collector_that_was_away_itself_listens_first(self) -> None:
        windows = scene.windows(now_s=NOW_S)
        windows.add(scene.live(NOW_S - 4000, NOW_S - 3600))
        windows.advance(NOW_S + 50)
        assert rings(windows) == set()
        assert rings(windows, {ABSENT: Alert(ABSENT, "firing", 0, 0, (), ())}) == {ABSENT}
        windows.advance(NOW_S + 60)
        assert rings(windows) == {ABSENT}

    def test_it_ends_when_anybody_speaks(self) -> None:
        windows = self.silent(900)
        windows.add(Deltas(instances=(scene.heard(NOW_S + 900, NOW_S + 900, instance="i2"),)))
        assert rings(windows) == set()

    def test_partial_loss_is_a_ticket(self) -> None:
        windows = running()
        windows.add(Deltas(instances=(scene.heard(NOW_S - 600, NOW_S + 400, instance="i2"),)))
        windows.advance(NOW_S + 400)
        (one,) = trouble.wanted(windows, alerts={}, now_s=windows.now_s)
        assert (one.key, dict(one.labels)["notify"], dict(one.labels)["severity"]) == (PARTIAL, "ticket", "warning")
