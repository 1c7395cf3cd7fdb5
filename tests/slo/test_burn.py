"""Burn arithmetic, against the design's figures, promtool-checked tables and plain simulation."""

import itertools
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slo.burn import (
    STANDARD_WINDOWS_S,
    Tier,
    WindowCounts,
    budget,
    burn_rate,
    burns,
    ends,
    left_out,
    long_burns,
    next_state,
    starts,
    tiers,
    windows_s,
)
from slo.objective import Objective, parse
from slo.source import SpecError


def objective(target: str = "99%", extra: str = "", *, signal: str = "ttft", threshold: str = "500ms") -> Objective:
    text = f"service: s\nobjectives: [{{name: o, signal: {signal}, target: {target}, threshold: {threshold}{extra}}}]"
    return parse(text)[0].objectives[0]


@pytest.mark.parametrize(
    ("target", "factors"),
    [
        ("99.9%", "13.44 5.6 2.8 1"),
        ("99%", "13.44 5.6 2.8 1"),
        ("95%", "5 3 2.4 1"),
        ("90%", "2.5 1.5 1.2 1"),
        ("80%", "2.5 1.5 1.2 1"),
        ("60.1%", "2.5 1.5 1.2 1"),
        ("60%", "1.5 1.2 1"),
        ("20%", "1.2 1"),
        ("0.1%", "1"),
    ],
)
def test_default_factors_follow_from_the_target(target: str, factors: str) -> None:
    assert [tier.factor for tier in tiers(objective(target))] == [Decimal(f) for f in factors.split()]


def test_a_default_tier_that_nothing_could_make_fire_is_left_out_by_name() -> None:
    assert [(tier.name, tier.bad_share_needed) for tier in left_out(objective("50%"))] == [("fast", Decimal("1.25"))]
    assert left_out(objective("61%")) == ()
    assert left_out(objective("50%", ", alerts: {tiers: [{name: day, budget: 5%, long: 1d}]}")) == ()


@given(st.decimals("0.01", "99.999", places=3), st.sampled_from([1, 3, 7, 28, 30, 90]))
def test_every_default_tier_can_fire_and_factors_fall(target: Decimal, days: int) -> None:
    found = tiers(objective(f"{target}%", f", window: {days}d"))
    assert all(tier.bad_share_needed < 1 for tier in found)
    assert all(tier.factor >= 1 for tier in found)
    assert all(a.factor >= b.factor for a, b in itertools.pairwise(found))
    assert all(tier.long_s <= days * 86400 and tier.short_s * 12 == tier.long_s for tier in found)


def test_a_page_tier_with_a_low_factor_waits_for_more_bad_events() -> None:
    assert [(t.notify, t.min_bad_events) for t in tiers(objective("95%"))] == [
        ("page", 10), ("page", 10), ("ticket", 5), ("ticket", 5),
    ]  # fmt: skip
    assert [t.min_bad_events for t in tiers(objective("99%"))] == [5, 10, 5, 5]
    assert {t.min_bad_events for t in tiers(objective("99%", ", alerts: {min_bad_events: 7}"))} == {7}


def test_saturation_signals_notify_by_ticket_unless_told_otherwise() -> None:
    kv = {"signal": "kv_occupancy", "threshold": "90%"}
    assert {t.notify for t in tiers(objective("99%", **kv))} == {"ticket"}
    by_hand = tiers(objective("99%", ", alerts: {tiers: [{name: fast, budget: 2%, long: 1h, notify: page}]}", **kv))
    assert [(t.notify, t.severity) for t in by_hand] == [("page", "critical")]


def test_a_tier_set_by_hand_is_taken_as_it_stands() -> None:
    (tier,) = tiers(
        objective("95%", ", window: 10m, alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 15s}]}")
    )
    assert (tier.factor, tier.short_s, tier.bad_share_needed, tier.spread_s) == (5, 15, Decimal("0.25"), None)


def test_windows_are_the_standard_ones_the_tiers_and_the_period() -> None:
    assert windows_s(objective()) == (*STANDARD_WINDOWS_S, 28 * 86400)
    assert windows_s(objective("99%", ", window: 7d, alerts: {tiers: [{name: a, budget: 2%, long: 90m}]}")) == (
        300, 450, 1800, 3600, 5400, 7200, 21600, 86400, 259200, 604800,
    )  # fmt: skip


# Minutes to detection at a constant bad share over a period of 30 days, simulated minute by minute for the stock
# factors (reference table of DESIGN's sources): page 1h, page 6h, ticket 1d, ticket 3d; None means never.
STOCK = [("1h", "2%"), ("6h", "5%"), ("1d", "10%"), ("3d", "10%")]
DETECTION_MIN = {
    ("99.9", "1"): (1, 3, 5, 5),
    ("99.9", "0.1"): (9, 22, 44, 44),
    ("99.9", "0.02"): (44, 109, 217, 217),
    ("99", "1"): (9, 22, 44, 44),
    ("99", "0.2"): (44, 109, 217, 217),
    ("99", "0.1"): (None, 217, 433, 433),
    ("95", "1"): (44, 109, 217, 217),
    ("95", "0.5"): (None, 217, 433, 433),
    ("95", "0.2"): (None, None, 1081, 1081),
    ("95", "0.1"): (None, None, None, 2161),
}


@pytest.mark.parametrize(("target", "share"), DETECTION_MIN)
def test_detection_times_are_those_of_the_minute_by_minute_simulation(target: str, share: str) -> None:
    listed = ", ".join(f"{{name: t{i}, budget: {b}, long: {long}}}" for i, (long, b) in enumerate(STOCK))
    found = tiers(objective(f"{target}%", f", window: 30d, alerts: {{tiers: [{listed}]}}"))
    for tier, minutes in zip(found, DETECTION_MIN[target, share], strict=True):
        seconds = tier.detection_s(Decimal(share))
        if minutes is None:
            assert seconds is None
        else:
            assert seconds is not None
            assert minutes * 60 - 60 <= seconds <= minutes * 60  # a simulation by the minute sees it at the next one


def test_reset_comes_from_the_short_window_and_spent_budget_from_the_long() -> None:
    fast = tiers(objective("99.9%", ", window: 30d"))[0]
    assert fast.reset_s(Decimal(1)) == 300 * (1 - Decimal("0.0144"))
    assert fast.reset_s(Decimal("0.01")) is None
    assert fast.budget_spent == Decimal("0.02")


def walk(tier: Tier, bad_at: list[bool], *, step_s: int) -> list[str]:
    """States over time of one event a step, by plain recount of both windows."""
    state, states = "ok", []
    for now in range(len(bad_at)):
        windows = []
        for length in (tier.long_s, tier.short_s, tier.recent_s or tier.long_s):
            seen = bad_at[max(0, now + 1 - length // step_s) : now + 1]
            windows.append(WindowCounts(good=seen.count(False), bad=seen.count(True)))
        state = next_state(tier, firing=state == "firing", long=windows[0], short=windows[1], recent=windows[2])
        states.append(state)
    return states


def test_a_burn_fires_once_and_resolves_on_good_events() -> None:
    tier = tiers(objective("95%"))[0]
    states = walk(tier, [False] * 60 + [True] * 30 + [False] * 60, step_s=60)
    fired = [a != "firing" and b == "firing" for a, b in itertools.pairwise(states)]
    assert sum(fired) == 1
    assert states[-1] in ("ok", "pending")
    # The short window burns at once, the long one after 25 % of its hour: 20 bad of 81 and more.
    assert states.index("firing") == pytest.approx(60 + 15, abs=3)


def test_silence_is_no_recovery_until_the_long_window_has_passed() -> None:
    tier = tiers(objective("95%"))[0]
    quiet = WindowCounts(0, 0)
    assert next_state(tier, firing=True, long=WindowCounts(0, 50), short=quiet) == "firing"
    assert next_state(tier, firing=True, long=quiet, short=quiet) == "ok"
    assert next_state(tier, firing=True, long=WindowCounts(0, 50), short=WindowCounts(20, 0)) == "ok"


@pytest.mark.parametrize(
    ("case", "window", "burns"),
    [
        ("clearly over", WindowCounts(50, 50), True),
        ("exactly at the factor is not over it", WindowCounts(75, 25), False),
        ("one event over", WindowCounts(74, 26), True),
        ("too few bad events", WindowCounts(0, 9), False),
        ("bad events in one minute only", WindowCounts(50, 50, bad_spans=1), False),
        ("half the window is not known", WindowCounts(60, 40, coverage=0.5), False),
        ("known enough for its share", WindowCounts(40, 60, coverage=0.5), True),
        ("nothing happened", WindowCounts(0, 0), False),
    ],
)
def test_when_a_long_window_asks_for_an_alert(case: str, window: WindowCounts, burns: bool) -> None:
    assert long_burns(tiers(objective("95%"))[0], window) is burns, case


@pytest.mark.parametrize(
    ("long", "short", "state"),
    [("21.2", "10.2", "pending"), ("12", "15", "ok"), ("22", "16", "firing"), ("14.4", "14.4", "ok")],
    ids=["D08: over its peak", "D08: not yet", "D08: both are over", "D08: at the factor is not over it"],
)
def test_a_tier_fires_when_both_windows_are_strictly_over(long: str, short: str, state: str) -> None:
    month = ", window: 30d, alerts: {tiers: [{name: fast, budget: 2%, long: 1h}]}"
    (tier,) = tiers(objective("99%", month))
    assert tier.factor == Decimal("14.4")

    def counts(burn: str, thousands: int) -> WindowCounts:
        bad = int(Decimal(burn) * 10) * thousands  # of 1,000 events 10 may be bad
        return WindowCounts(1000 * thousands - bad, bad)

    assert next_state(tier, firing=False, long=counts(long, 12), short=counts(short, 1)) == state


@pytest.mark.parametrize(
    ("target", "highest", "stock_factor_can_fire"),
    [("50%", 2.0, False), ("90%", 10.0, False), ("93%", 14.2857, False), ("95%", 20.0, True), ("99%", 100.0, True)],
    ids=["D09: 50", "D09: 90", "D09: 93", "D09: 95", "D09: 99"],
)
def test_a_burn_is_at_most_one_over_what_may_be_bad(
    target: str, *, highest: float, stock_factor_can_fire: bool
) -> None:
    stock = ", window: 30d, alerts: {tiers: [{name: fast, budget: 2%, long: 1h}]}"
    reached = burn_rate(1000, 1000, objective(target).allowed_bad)
    assert reached is not None
    assert reached == pytest.approx(highest, abs=1e-4)
    if stock_factor_can_fire:
        (tier,) = tiers(objective(target, stock))
        assert tier.factor == Decimal("14.4") < Decimal(reached)
    else:
        with pytest.raises(SpecError, match="tier fast can never fire"):
            objective(target, stock)
    assert all(tier.factor < highest for tier in tiers(objective(target)))


BURNING = WindowCounts(600, 400)
QUIET_AGAIN = WindowCounts(900, 100)
STARTS = {
    # a p95 page: burn 5, which is more than 25 % bad
    "three of them, and more than the share": (BURNING, WindowCounts(8, 3), "firing"),
    "three of them, and no more than the share": (BURNING, WindowCounts(9, 3), "pending"),
    "a straggler or two of a burn that is over": (BURNING, WindowCounts(2, 2), "pending"),
    "one event, and it is bad": (BURNING, WindowCounts(0, 1), "firing"),
    "no event": (BURNING, WindowCounts(0, 0), "pending"),
    "the long window has seen no more than the short": (WindowCounts(20, 60), WindowCounts(20, 60), "pending"),
    "and now it has": (WindowCounts(21, 60), WindowCounts(20, 60), "firing"),
}


@pytest.mark.parametrize("case", STARTS)
def test_chance_starts_nothing(case: str) -> None:
    long, short, state = STARTS[case]
    assert next_state(tiers(objective("95%"))[0], firing=False, long=long, short=short) == state


@pytest.mark.parametrize(
    ("target", "in_a_row"), [("99.9%", 1), ("95%", 1), ("94.9%", 2), ("80%", 2), ("77%", 3), ("50%", 5), ("0.1%", 2995)]
)
def test_so_many_bad_in_a_row_a_service_within_its_promise_has_once_in_twenty_times(target: str, in_a_row: int) -> None:
    tier = tiers(objective(target))[0]
    assert tier.bad_in_a_row == in_a_row
    chance = [tier.allowed_bad**number for number in (in_a_row - 1, in_a_row)]
    assert chance[0] > Decimal("0.05") >= chance[1]


@pytest.mark.parametrize(
    ("good", "bad", "state"),
    [(6, 3, "pending"), (6, 4, "pending"), (7, 5, "firing"), (0, 1, "pending"), (0, 2, "firing")],
)
def test_a_loose_promise_lets_more_be_bad_by_chance(good: int, bad: int, state: str) -> None:
    # The six hours of a p80 burn from 30 % bad on, and a fifth may be: of ten events two, and two more are chance.
    tier = tiers(objective("80%"))[1]
    assert next_state(tier, firing=False, long=BURNING, short=WindowCounts(good, bad)) == state


@pytest.mark.parametrize(
    ("windows", "state"),
    [("long: 5m", "firing"), ("long: 10m, short: 10m", "firing"), ("long: 10m, short: 5m", "pending")],
)
def test_windows_of_ticks_or_of_one_length_are_one_look_anyway(windows: str, state: str) -> None:
    (tier,) = tiers(objective("99%", f", alerts: {{tiers: [{{name: one, budget: 0.1%, {windows}}}]}}"))
    assert next_state(tier, firing=False, long=BURNING, short=BURNING) == state


THIRTY = WindowCounts(700, 300)
ENDS = {
    # the same page; the long window holds 40 % bad, but for where it says so
    "quiet, and would be if two more were bad": (BURNING, WindowCounts(11, 1), "ok"),
    "it would not": (BURNING, WindowCounts(10, 1), "firing"),
    "none bad of five, where two were to be expected": (BURNING, WindowCounts(5, 0), "ok"),
    "none bad of four": (BURNING, WindowCounts(4, 0), "firing"),
    "none bad of six, where 30 % were": (THIRTY, WindowCounts(6, 0), "firing"),
    "none bad of seven, where 30 % were": (THIRTY, WindowCounts(7, 0), "ok"),
    "it burns on": (BURNING, WindowCounts(74, 26), "firing"),
    "it burns on, and the long window no more": (QUIET_AGAIN, WindowCounts(74, 26), "firing"),
    "few good events, and the long window burns no more": (QUIET_AGAIN, WindowCounts(1, 0), "ok"),
    "few good events, and the long window would burn with two more": (
        WindowCounts(30, 9),
        WindowCounts(1, 0),
        "firing",
    ),
    "few good events, and the long window would not": (WindowCounts(36, 8), WindowCounts(1, 0), "ok"),
    "few good events, and the long window holds none bad": (WindowCounts(3, 0), WindowCounts(1, 0), "ok"),
    "two good events in the long window are no recovery": (WindowCounts(2, 0), WindowCounts(0, 0), "firing"),
    "silence while the long window burns": (BURNING, WindowCounts(0, 0), "firing"),
    "silence, and the long window has forgotten": (WindowCounts(0, 0), WindowCounts(0, 0), "ok"),
}


@pytest.mark.parametrize("case", ENDS)
def test_chance_ends_nothing(case: str) -> None:
    long, short, state = ENDS[case]
    assert next_state(tiers(objective("95%"))[0], firing=True, long=long, short=short) == state


@pytest.mark.parametrize(("good", "state"), [(9, "firing"), (10, "ok")])
def test_ten_good_events_end_a_tier_of_a_tight_target_that_burns_slowly(good: int, state: str) -> None:
    tier = tiers(objective("99.9%"))[0]
    assert next_state(tier, firing=True, long=WindowCounts(950, 50), short=WindowCounts(good, 0)) == state


@pytest.mark.parametrize(("least", "chance", "state"), [(1, 0, "firing"), (2, 1, "firing"), (3, 2, "pending")])
def test_who_asks_for_fewer_bad_events_leaves_fewer_to_chance(least: int, chance: int, state: str) -> None:
    tier = tiers(objective("99%", f", alerts: {{min_bad_events: {least}}}"))[0]
    assert tier.chance_events == chance
    assert next_state(tier, firing=False, long=BURNING, short=WindowCounts(4, 2)) == state


@pytest.mark.parametrize(
    ("alerts", "recent_s"),
    [
        ("", [1800, 7200, 21600, 86400]),
        ("long: 1h", [1800]),
        ("long: 59m", [300]),
        ("long: 20m", [300]),
        ("long: 10m, short: 5m", [None]),
        ("long: 5m", [None]),
    ],
)
def test_a_window_between_the_two_is_one_that_is_kept_anyway(alerts: str, recent_s: list[int | None]) -> None:
    by_hand = f", alerts: {{tiers: [{{name: one, budget: 0.1%, {alerts}}}]}}" if alerts else ""
    assert [tier.recent_s for tier in tiers(objective("99%", by_hand))] == recent_s


@pytest.mark.parametrize(("bad", "state"), [(25, "pending"), (26, "firing")])
def test_what_the_long_window_remembers_starts_nothing(bad: int, state: str) -> None:
    tier = tiers(objective("95%"))[0]
    recent = WindowCounts(100 - bad, bad)
    assert next_state(tier, firing=False, long=BURNING, short=WindowCounts(0, 3), recent=recent) == state
    assert next_state(tier, firing=True, long=BURNING, short=WindowCounts(0, 3), recent=recent) == "firing"


@pytest.mark.parametrize(("target", "stragglers"), [("99%", 3), ("95%", 5), ("80%", 10)])
def test_an_incident_that_is_over_does_not_ring_again_for_stragglers(target: str, stragglers: int) -> None:
    medium = tiers(objective(target))[1]
    assert (medium.long_s, medium.recent_s, medium.short_s) == (6 * 3600, 2 * 3600, 1800)
    states = walk(medium, [False] * 360 + [True] * 120 + [False] * 180 + [True] * stragglers, step_s=60)
    assert sum(a != "firing" and b == "firing" for a, b in itertools.pairwise(states)) == 1
    assert states[-1] == "pending"
    long, short = WindowCounts(240 - stragglers, 120 + stragglers), WindowCounts(30 - stragglers, stragglers)
    assert next_state(medium, firing=False, long=long, short=short) == "firing", "but for the window between the two"


@given(*[st.tuples(st.integers(0, 60), st.integers(0, 60)) for _ in range(2)], st.sampled_from(["80%", "95%", "99.9%"]))
def test_what_starts_a_tier_does_not_end_it(short: tuple[int, int], more: tuple[int, int], target: str) -> None:
    for tier in tiers(objective(target)):
        windows = WindowCounts(short[0] + more[0], short[1] + more[1]), WindowCounts(*short)
        assert not (starts(tier, *windows, None) and ends(tier, *windows))


def test_long_without_short_is_pending() -> None:
    tier = tiers(objective("95%"))[0]
    assert not burns(tier, WindowCounts(75, 25))
    assert next_state(tier, firing=False, long=WindowCounts(10, 90), short=WindowCounts(10, 0)) == "pending"


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=8))
def test_burn_of_concatenated_windows_is_the_count_weighted_mean(parts: list[tuple[int, int]]) -> None:
    allowed = Decimal("0.05")
    bad, total = sum(b for _, b in parts), sum(g + b for g, b in parts)
    whole = burn_rate(bad, total, allowed)
    if total == 0:
        assert whole is None
        return
    each = [(burn_rate(b, g + b, allowed), g + b) for g, b in parts]
    assert whole == pytest.approx(sum(rate * n for rate, n in each if rate is not None) / total)


@pytest.mark.parametrize(
    ("case", "counts", "remaining", "exhausted_in_s"),
    [
        ("nothing happened", {"good": 0, "bad": 0, "age_s": 28 * 86400, "lately_bad": 0}, 1.0, None),
        ("half spent", {"good": 9950, "bad": 50, "age_s": 28 * 86400, "lately_bad": 36}, 0.5, 5000.0),
        (
            "a young service has the budget of its period",
            {"good": 995, "bad": 5, "age_s": 2.8 * 86400, "lately_bad": 0},
            0.95,
            None,
        ),
        (
            "minutes of past are no hour to spread bad events over",
            {"good": 995, "bad": 5, "age_s": 300.0, "lately_bad": 5},
            1 - 5 / (10 * 28 * 86400 / 300),
            (10 * 28 * 86400 / 300 - 5) * 60,
        ),
        ("all spent", {"good": 900, "bad": 100, "age_s": 28 * 86400, "lately_bad": 3600}, -9.0, 0.0),
        ("spent and quiet stays spent", {"good": 900, "bad": 100, "age_s": 28 * 86400, "lately_bad": 0}, -9.0, 0.0),
    ],
)
def test_the_budget_comes_from_counts(
    case: str, counts: dict[str, float], remaining: float, exhausted_in_s: float | None
) -> None:
    found = budget(objective("99%"), **counts)  # type: ignore[arg-type]
    assert found.remaining == pytest.approx(remaining), case
    assert found.exhausted_in_s == (None if exhausted_in_s is None else pytest.approx(exhausted_in_s))


@pytest.mark.parametrize("age_s", [60, 600, 7200])
def test_a_budget_that_burns_evenly_lasts_what_is_left_of_it_at_any_age(age_s: int) -> None:
    # Ten minutes' period: burn 0.5 spends half of it in that time, whenever one looks, and not the hour's half.
    found = budget(objective(extra=", window: 10m"), good=1990, bad=10, age_s=age_s, lately_bad=10)
    assert found.exhausted_in_s == pytest.approx(found.remaining * 600 / 0.5)
