"""Burn, budget and tiers of one objective: the arithmetic on whole counts, and what is said of it."""

from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.judging.burning import Promise, judge
from collector.judging.track import Track, tracks
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.values.deltas import Deltas
from collector.values.verdicts import BudgetRow, BurnRow
from collector.windowing.coverage import of_series
from collector.windowing.windows import Windows
from slo.burn import Tier, WindowCounts, burn_rate, next_state, tiers, windows_s
from tests.collector import scene
from tests.collector.scene import DAY_S, NOW_S

FAST = AlertKey("LLMTTFTBudgetBurn", "", "chat", "m", "ttft", "fast")


@dataclass(frozen=True)
class Said:
    """What is said of one model."""

    burns: list[BurnRow]
    budget: BudgetRow
    wanted: tuple[Wanted, ...]


def judged(windows: Windows, model: str = "m", alerts: dict[AlertKey, Alert] | None = None) -> Said:
    """What is said of one model when all are judged together."""
    spec = windows.plan.specs[0]
    own, kept_s = tiers(spec.objectives[0]), windows_s(spec.objectives[0])
    promises = [Promise(found, own, kept_s) for found in tracks(windows, spec, spec.objectives[0], "").values()]
    judgement = judge(windows, promises, alerts=alerts or {})
    (budget,) = judgement.budgets.where("model", model)
    wanted = tuple(one for one in judgement.wanted if one.key.model == model)
    return Said(list(judgement.burns.where("model", model)), budget, wanted)


def states(judgement: Said) -> dict[str, str]:
    return {one.key.tier: one.state for one in judgement.wanted if one.key.tier}


def row(judgement: Said, window_s: int) -> BurnRow:
    (found,) = [one for one in judgement.burns if one.window_s == window_s]
    return found


def steady(windows: Windows, *, since_s: int, good: int, bad: int, step_s: int = 60) -> None:
    """The same events in each step from `since_s` ago until now, from a service that is heard all the time."""
    now_s = windows.now_s
    windows.add(scene.live(now_s - since_s, now_s))
    windows.add(Deltas(slo=tuple(scene.slo(at_s, good, bad) for at_s in range(now_s - since_s, now_s, step_s))))


def test_burn_is_bad_over_total_over_what_may_be_bad() -> None:
    windows = scene.windows()
    steady(windows, since_s=3600, good=98, bad=2)
    hour = row(judged(windows), 3600)
    # The window holds what began after now - 1 h: 59 of the 60 minutes.
    assert (hour.good, hour.bad, hour.basis, hour.unsure) == (59 * 98, 59 * 2, "counts", 0)
    assert hour.burn == pytest.approx(2.0)
    assert hour.coverage == 1.0


def test_d01_a_window_without_events_has_no_burn_and_poisons_nothing() -> None:
    windows = scene.windows()
    windows.add(Deltas(slo=(scene.slo(NOW_S - 600, 0, 0),)))
    assert {(one.good, one.bad, one.burn) for one in judged(windows).burns} == {(0, 0, None)}
    windows.add(Deltas(slo=(scene.slo(NOW_S, 10, 0),)))
    assert [row(judged(windows), w).burn for w in (300, 3600)] == [0.0, 0.0]


def test_an_objective_nobody_spoke_of_stands_with_zeros() -> None:
    judgement = judged(scene.windows(), "*")
    assert [one.window_s for one in judgement.burns] == [300, 1800, 3600, 7200, 21600, DAY_S, 3 * DAY_S, 28 * DAY_S]
    assert {(one.good, one.bad, one.burn, one.coverage) for one in judgement.burns} == {(0, 0, None, 0.0)}
    assert (judgement.budget.remaining, judgement.budget.exhausted_in_s, judgement.wanted) == (1.0, None, ())


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 50)), min_size=1, max_size=12))
def test_burn_of_windows_put_together_is_their_count_weighted_mean(parts: list[tuple[int, int]]) -> None:
    """Never a mean of ratios: the burn of one window that holds several is weighted by their events."""
    windows = scene.windows()
    rows = tuple(scene.slo(NOW_S - 60 * number, good, bad) for number, (good, bad) in enumerate(parts))
    windows.add(Deltas(slo=rows))
    allowed = Decimal("0.01")
    burns = [(burn_rate(bad, good + bad, allowed), good + bad) for good, bad in parts]
    weights = sum(total for _, total in burns)
    whole = row(judged(windows), 3600).burn
    if weights == 0:
        assert whole is None
    else:
        weighted = sum(rate * total for rate, total in burns if rate is not None) / weights
        assert whole == pytest.approx(weighted)


class TestTiers:
    def test_fast_pages_when_both_windows_burn(self) -> None:
        windows = scene.windows()
        steady(windows, since_s=3600, good=80, bad=20)
        judgement = judged(windows)
        assert states(judgement)["fast"] == "firing"
        (one,) = [one for one in judgement.wanted if one.key == FAST]
        assert dict(one.labels) == {
            "alertname": "LLMTTFTBudgetBurn",
            "severity": "critical",
            "notify": "page",
            "service_name": "chat",
            "model_name": "m",
            "objective": "ttft",
            "burn_tier": "fast",
            "long_window": "1h",
            "short_window": "5m",
        }
        told = dict(one.annotations)
        assert "1180 of 5900 events of the last 1h were bad" in told["description"]
        assert "time to first token over 500ms; 1% may be" in told["description"]
        assert "Burn 20.00, alert above 13.44" in told["description"]
        assert told["runbook_url"].endswith("LLMTTFTBudgetBurn.md")

    def test_d08_a_long_window_alone_pends_and_a_short_one_alone_does_nothing(self) -> None:
        over = scene.windows()
        steady(over, since_s=3600, good=60, bad=40)
        over.advance(NOW_S + 300)
        over.add(Deltas(slo=tuple(scene.slo(NOW_S + at_s, 100, 0) for at_s in range(0, 300, 60))))
        assert states(judged(over))["fast"] == "pending"
        short = scene.windows()
        steady(short, since_s=3600, good=100, bad=0)
        short.add(Deltas(slo=(scene.slo(NOW_S - 60, 0, 90),)))
        assert "fast" not in states(judged(short))

    def test_d03_one_bad_of_three_in_a_quiet_hour_pages_nobody(self) -> None:
        windows = scene.windows()
        windows.add(scene.live(NOW_S - 3600, NOW_S))
        windows.add(
            Deltas(slo=(scene.slo(NOW_S - 2400, 1, 0), scene.slo(NOW_S - 1200, 1, 0), scene.slo(NOW_S - 10, 0, 1)))
        )
        assert row(judged(windows), 3600).burn == pytest.approx(100 / 3)
        assert states(judged(windows)) == {}

    def test_a_burst_within_one_minute_is_no_incident_yet(self) -> None:
        windows = scene.windows()
        windows.add(scene.live(NOW_S - 3600, NOW_S))
        minute_s = NOW_S - 60
        windows.add(
            Deltas(slo=(scene.slo(NOW_S - 3000, 10, 0), scene.slo(minute_s, 0, 20), scene.slo(minute_s + 50, 0, 20)))
        )
        assert states(judged(windows)) == {}
        windows.advance(NOW_S + 10)
        windows.add(Deltas(slo=(scene.slo(NOW_S, 0, 1),)))
        assert states(judged(windows))["fast"] == "firing"

    def test_coverage_damps_the_start(self) -> None:
        windows = scene.windows()
        steady(windows, since_s=600, good=50, bad=50)
        assert row(judged(windows), 3600).coverage == pytest.approx(1 / 6)
        assert "fast" not in states(judged(windows)), "burn 50 over a sixth of the hour is less than 13.44"
        windows = scene.windows()
        steady(windows, since_s=600, good=0, bad=100)
        assert states(judged(windows))["fast"] == "firing"

    def test_once_firing_it_ends_on_good_events_and_not_on_silence(self) -> None:
        windows = scene.windows()
        steady(windows, since_s=3600, good=60, bad=40)
        firing = {FAST: Alert(FAST, "firing", NOW_S, NOW_S, (), ())}
        windows.advance(NOW_S + 900)
        windows.add(scene.live(NOW_S, NOW_S + 900))
        assert states(judged(windows, alerts=firing))["fast"] == "firing"
        assert states(judged(windows)).get("fast") == "pending"
        windows.add(Deltas(slo=(scene.slo(NOW_S + 890, 6, 0),)))
        assert "fast" not in states(judged(windows, alerts=firing))
        silent = scene.windows()
        steady(silent, since_s=3600, good=60, bad=40)
        silent.advance(NOW_S + 3600)
        assert "fast" not in states(judged(silent, alerts=firing))

    def test_what_was_asked_for_beyond_the_known_names_pages_nobody_alone(self) -> None:
        windows = scene.windows()
        windows.add(scene.live(NOW_S - 3600, NOW_S))
        rows = tuple(scene.slo(at_s, 0, 100, model="other") for at_s in range(NOW_S - 3600, NOW_S, 60))
        windows.add(Deltas(slo=rows))
        other = {one.key.tier: dict(one.labels)["notify"] for one in judged(windows, "other").wanted}
        assert set(other.values()) == {"ticket"}
        assert states(judged(windows, "*"))["fast"] == "firing"

    def test_the_worst_hash_speaks(self) -> None:
        windows = scene.windows()
        steady(windows, since_s=3600, good=100, bad=0)
        rows = tuple(scene.slo(at_s, 50, 50, hash_="old") for at_s in range(NOW_S - 3600, NOW_S, 60))
        windows.add(Deltas(slo=rows))
        judgement = judged(windows)
        assert states(judgement)["fast"] == "firing"
        assert row(judgement, 3600).burn == pytest.approx(50.0)
        assert judgement.budget.bad > 0

    def test_labels_of_the_objective_come_along_and_cannot_pose_as_ours(self) -> None:
        text = (
            "service: chat\nobjectives:\n  - {name: ttft, signal: ttft, percentile: 99, threshold: 500ms, owner: llm,"
            " runbook_url: 'https://runbooks.example/ttft', labels: {team: search, notify: none}}\n"
        )
        windows = scene.windows(text)
        steady(windows, since_s=3600, good=50, bad=50)
        one = judged(windows).wanted[0]
        labels = dict(one.labels)
        assert (labels["owner"], labels["team"], labels["notify"]) == ("llm", "search", "page")
        assert dict(one.annotations)["runbook_url"] == "https://runbooks.example/ttft"


class TestBudget:
    """D17: remaining = 1 - bad/allowance, from counts; never above 1, never clamped below."""

    @pytest.mark.parametrize(
        ("total", "bad", "remaining"), [(10000, 0, 1.0), (10000, 50, 0.5), (10000, 100, 0.0), (10000, 862, -7.62)]
    )
    def test_a_period_that_is_held_whole(self, total: int, bad: int, remaining: float) -> None:
        windows = scene.windows()
        windows.add(Deltas(slo=(scene.slo(NOW_S - 29 * DAY_S, 5, 0), scene.slo(NOW_S - DAY_S, total - bad, bad))))
        budget = judged(windows).budget
        assert (budget.good, budget.bad, budget.allowance) == (total - bad, bad, pytest.approx(100.0))
        assert budget.remaining == pytest.approx(remaining)
        assert budget.exhausted_in_s == (0.0 if remaining <= 0 else None)

    def test_a_young_service_has_the_budget_of_a_period_at_its_traffic(self) -> None:
        windows = scene.windows()
        steady(windows, since_s=14 * DAY_S, good=100, bad=0, step_s=DAY_S // 2)
        windows.add(Deltas(slo=(scene.slo(NOW_S - 10, 0, 14),)))
        budget = judged(windows).budget
        assert budget.allowance == pytest.approx((28 * 100 + 14) * 0.01 * 2, rel=1e-4)
        assert budget.remaining == pytest.approx(1 - 14 / budget.allowance)
        assert budget.exhausted_in_s == pytest.approx((budget.allowance - 14) / (14 / 3600))

    def test_a_service_of_minutes_spends_at_the_pace_of_those(self) -> None:
        windows = scene.windows()
        steady(windows, since_s=300, good=995, bad=5, step_s=10)
        budget = judged(windows).budget
        assert budget.exhausted_in_s == pytest.approx((budget.allowance - budget.bad) / 0.5, rel=0.04)

    def test_what_went_bad_before_a_period_under_an_hour_spends_nothing_of_it(self) -> None:
        tiers = "alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 20s}]}"
        windows = scene.windows(scene.TTFT.replace("500ms", f"500ms, window: 10m, {tiers}"))
        steady(windows, since_s=3600, good=999, bad=1, step_s=10)
        windows.add(Deltas(slo=(scene.slo(NOW_S - 1800, 0, 5000),)))
        budget = judged(windows).budget
        assert budget.exhausted_in_s == pytest.approx((budget.allowance - budget.bad) / (59 / 600))

    def test_a_spent_budget_is_a_ticket_once_enough_is_known(self) -> None:
        windows = scene.windows()
        steady(windows, since_s=4 * DAY_S, good=90, bad=10, step_s=600)
        exhausted = [one for one in judged(windows).wanted if one.key.name == "LLMBudgetExhausted"]
        assert [dict(one.labels)["notify"] for one in exhausted] == ["ticket"]
        assert "were bad" in dict(exhausted[0].annotations)["description"]
        young = scene.windows()
        steady(young, since_s=2 * DAY_S, good=60, bad=40, step_s=600)
        assert judged(young).budget.remaining < 0
        assert [one for one in judged(young).wanted if one.key.name == "LLMBudgetExhausted"] == []


def test_what_is_read_from_a_histogram_says_so() -> None:
    windows = scene.windows()
    windows.add(scene.live(NOW_S - 600, NOW_S))
    windows.add(Deltas(latencies=(scene.values(NOW_S - 60, [0.1, 0.2, 0.9], source="engine"),)))
    judgement = judged(windows)
    assert (row(judgement, 300).good, row(judgement, 300).bad, row(judgement, 300).basis) == (2, 1, "histogram")
    assert judgement.budget.basis == "histogram"


@given(
    st.lists(
        st.tuples(
            st.integers(0, 90).map(lambda minutes: 60 * minutes),
            st.integers(0, 40),
            st.integers(0, 40),
            st.sampled_from(["a", "b", "other"]),
            st.sampled_from(["old", scene.hash_of()]),
        ),
        max_size=14,
    ),
    st.sets(st.tuples(st.sampled_from(["*", "a", "b"]), st.sampled_from(["fast", "medium", "slow"])), max_size=3),
)
@settings(deadline=None)
def test_all_together_are_judged_as_each_alone(
    events: list[tuple[int, int, int, str, str]], on_fire: set[tuple[str, str]]
) -> None:
    """Burns are those of the worst track, and no tier that would stir is passed over."""
    windows = scene.windows()
    windows.add(scene.live(NOW_S - 7200, NOW_S))
    rows = [scene.slo(NOW_S - age_s, good, bad, model=model, hash_=of) for age_s, good, bad, model, of in events]
    windows.add(Deltas(slo=tuple(rows)))
    spec = windows.plan.specs[0]
    objective, own = spec.objectives[0], tiers(spec.objectives[0])
    by_model = tracks(windows, spec, objective, "")
    keys = [AlertKey("LLMTTFTBudgetBurn", "", "chat", model, "ttft", tier) for model, tier in sorted(on_fire)]
    alerts = {key: Alert(key, "firing", NOW_S, NOW_S, (), ()) for key in keys}
    promises = [Promise(found, own, windows_s(objective)) for found in by_model.values()]
    judgement = judge(windows, promises, alerts=alerts)
    for one in judgement.burns:
        held = [windows.events.held(track.keys, one.window_s) for track in by_model[one.model]]
        burns = [burn_rate(each.bad, each.good + each.bad, objective.allowed_bad) for each in held]
        assert one.burn == max((burn for burn in burns if burn is not None), default=None)
    alone = {
        (model, tier.name): max(
            (_state(windows, track, tier, (model, tier.name) in on_fire) for track in found), key=ORDER
        )
        for model, found in by_model.items()
        for tier in own
        if not (model == "other" and tier.notify == "page")
    }
    pages = {tier.name for tier in own if tier.notify == "page"}
    is_paged = any(tier in pages for _, tier in {*on_fire, *(of for of, state in alone.items() if state == "firing")})
    expected = {
        (model, tier, "pending" if is_paged and tier not in pages and (model, tier) not in on_fire else state)
        for (model, tier), state in alone.items()
        if state != "ok"
    }
    assert {(one.key.model, one.key.tier, one.state) for one in judgement.wanted if one.key.tier} == expected


PAGED = scene.TTFT.replace(
    "threshold: 500ms",
    "threshold: 500ms, alerts: {tiers: [{name: fast, budget: 2%, long: 1h}, "
    "{name: slow, budget: 2%, long: 1h, short: 10m, notify: ticket}]}",
)


def test_a_ticket_waits_until_its_short_window_knows_nothing_of_a_page() -> None:
    """Both tiers burn from the same moment on, and the page comes first."""
    windows = scene.windows(PAGED)
    steady(windows, since_s=3600, good=0, bad=10)
    page, ticket = (AlertKey("LLMTTFTBudgetBurn", "", "chat", "m", "ttft", tier) for tier in ("fast", "slow"))
    assert states(judged(windows)) == {"fast": "firing", "slow": "pending"}
    before = {ticket: Alert(ticket, "firing", NOW_S - 60, NOW_S - 60, (), ())}
    assert states(judged(windows, alerts=before))["slow"] == "firing"
    spec = windows.plan.specs[0]
    own, kept_s = tiers(spec.objectives[0]), windows_s(spec.objectives[0])
    promises = [
        Promise(
            found, [tier for tier in own if tier.notify == "ticket"] + [replace(own[0], min_bad_events=10**6)], kept_s
        )
        for found in tracks(windows, spec, spec.objectives[0], "").values()
    ]
    for ended_s, expected in ((NOW_S - 599, "pending"), (NOW_S - 600, "firing")):
        of_another_model = Alert(replace(page, model="n"), "resolved", ended_s, NOW_S - 3000, (), ())
        judgement = judge(windows, promises, alerts={}, ended=[of_another_model])
        assert {one.state for one in judgement.wanted if one.key == ticket} == {expected}


ORDER = ("ok", "pending", "firing").index


def _state(windows: Windows, track: Track, tier: Tier, firing: bool) -> str:
    counts = []
    for window_s in (tier.long_s, tier.short_s, tier.recent_s or tier.long_s):
        held = windows.events.held(track.keys, window_s)
        first_s = min(
            (windows.events.firsts_s()[lane] for lane in windows.events.lanes(track.keys)), default=NOW_S + 10
        )
        known = of_series(
            windows.coverage(("", "chat"), window_s), window_s=window_s, age_s=int(NOW_S + scene.TICK_S - first_s)
        )
        spans = windows.events.bad_spans(track.keys, window_s, spread_s=tier.spread_s)
        counts.append(WindowCounts(held.good, held.bad, known, spans))
    return next_state(tier, firing=firing, long=counts[0], short=counts[1], recent=counts[2])
