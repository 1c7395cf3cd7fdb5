"""bench/alerts.py runs, its counts are what its incidents say, and its verdicts are those of `slo.burn`."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from corpus import paging, promises
from corpus.counts import TICK_S, Counts, Month, Steps, month
from corpus.incidents import HOUR_S, INCIDENTS, MINUTE_S, Incident
from corpus.paging import OURS, STOCK, Alerts, Outcome, joined, told
from corpus.service import OBJECTIVES, WELL, Condition, bad_share, fates
from corpus.summary import duration, stock_can_page, times_to_page_s
from corpus.verdicts import CLASSIC, Counter, Firing, fired, fired_classic

from slo.burn import MIN_BAD_EVENTS, Tier, WindowCounts, next_state, tiers
from slo.objective import Objective

SCRIPT = Path(__file__).parents[2] / "bench" / "alerts.py"
BY_NAME = {objective.name: objective for objective in OBJECTIVES}


def bench(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=150)


def kind(name: str) -> Incident:
    return next(incident for incident in INCIDENTS if incident.name == name)


def counts(of: Month, objective: str) -> Counts:
    return of.by_objective[list(BY_NAME).index(objective)]


def test_it_runs_and_says_what_became_of_every_month(tmp_path: Path) -> None:
    written = tmp_path / "months.json"
    few = ["--seeds", "2", "--traffic", "600", "--incidents", "total hang,2x slow,deploy blip"]
    ran = bench(*few, "--json", written, "--objectives", "ttft-p99,tpot-p99,answered")
    assert ran.returncode == 0, ran.stderr
    months = json.loads(written.read_text())
    assert len(months) == 3 * 2 * 2
    paged = [one for one in months if one["tiers"] == "ours" and one["page_after_s"] is not None]
    assert len(paged) == 4
    assert "every total hang is paged: 2 of 2" in ran.stdout
    assert "By objective and traffic" in ran.stdout


@pytest.mark.parametrize(("per_h", "code"), [("1", 1), ("6000", 0)])
def test_check_says_with_its_exit_code_whether_all_is_kept(per_h: str, code: int) -> None:
    # At one request an hour a hang of two hours hurts fewer than the five that a page asks for.
    few = ("--quick", "--incidents", "total hang", "--objectives", "answered", "--traffic", per_h)
    ran = bench(*few, "--check", "--markdown")
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert ("NOT KEPT" in ran.stdout) == bool(code)
    assert f"| total hang | page | ours | {1 - code}/1 |" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seeds", "0"), "--seeds 0: from 1 to 1000"),
        (("--traffic", "many"), "--traffic many: requests an hour from 1 to 1000000"),
        (("--incidents", "flood"), "--incidents flood: there is no such one; use 1 of 3 fails at night, 1.2x slow"),
        (("--objectives", ""), "--objectives : there is no such one; use answered, e2e-p80"),
    ],
)
def test_what_is_not_known_is_refused_by_name(arguments: tuple[str, ...], said: str) -> None:
    ran = bench(*arguments)
    assert ran.returncode == 2
    assert said in ran.stderr


# The verdicts.


def random_counts(seed: int, *, minutes: int = 400) -> tuple[Steps, Counts]:
    """Few events, some stretches bad and some without any, an hour in ticks, some minutes unknown."""
    random = np.random.default_rng(seed)
    fine = minutes // 2 * MINUTE_S
    starts_s = np.concatenate(
        (
            np.arange(0, fine, MINUTE_S),
            np.arange(fine, fine + HOUR_S, TICK_S),
            np.arange(fine + HOUR_S, minutes * MINUTE_S, MINUTE_S),
        )
    )
    ends_s = np.append(starts_s[1:], minutes * MINUTE_S)
    stretch = np.arange(starts_s.size) // 20
    rate = random.choice([0.0, 0.3, 4.0], size=stretch[-1] + 1)[stretch]
    came = random.poisson(rate * (ends_s - starts_s) / MINUTE_S)
    bad = random.binomial(came, random.choice([0.0, 0.05, 0.3, 1.0], size=stretch[-1] + 1)[stretch])
    return Steps(starts_s, ends_s, random.random(minutes) > 0.1), Counts(came - bad, bad)


def walked(steps: Steps, made: Counts, tier: Tier) -> tuple[list[Firing], int]:
    """When the tier fires, asked at every step of windows added up anew; and how often it did not, for `bad_spans`."""
    found, firing, began, minute_short = [], False, 0, 0
    for at_s in steps.ends_s.tolist():
        asked_s = (tier.long_s, tier.short_s, tier.recent_s or tier.long_s)
        held = [_held(steps, made, at_s, window_s) for window_s in asked_s]
        now = next_state(tier, firing=firing, long=held[0], short=held[1], recent=held[2]) == "firing"
        minute_short += held[0].bad >= tier.min_bad_events and held[0].bad_spans < 2
        if now and not firing:
            began = at_s
        elif firing and not now:
            found.append(Firing(began, at_s))
        firing = now
    return ([*found, Firing(began, int(steps.ends_s[-1]))] if firing else found), minute_short


def _held(steps: Steps, made: Counts, now_s: int, window_s: int) -> WindowCounts:
    inside = (steps.starts_s > now_s - window_s) & (steps.ends_s <= now_s)
    spans = {int(start_s) // MINUTE_S for start_s in steps.starts_s[inside & (made.bad > 0)]}
    minute, width = now_s // MINUTE_S, window_s // MINUTE_S
    known = int(np.count_nonzero(steps.known[max(minute - width, 0) : minute]))
    return WindowCounts(int(made.good[inside].sum()), int(made.bad[inside].sum()), known / width, min(len(spans), 2))


@pytest.mark.parametrize("target", ["90", "99", "99.9"])
def test_a_tier_fires_exactly_when_slo_burn_says_so(target: str) -> None:
    specs = [{"name": "hour", "budget": "2%", "long": "1h"}, {"name": "short", "budget": "0.5%", "long": "20m"}]
    objective = Objective.model_validate(
        {"name": "x", "signal": "ttft", "percentile": target, "threshold": "1s", "window": "4d"}
        | {"alerts": {"tiers": specs, "min_bad_events": 3}}
    )
    firings, minute_short = 0, 0
    for seed in range(12):
        steps, made = random_counts(seed)
        counter = Counter(steps, made, warm_s=0)
        for tier in tiers(objective):
            expected, held_back = walked(steps, made, tier)
            assert fired(counter, tier) == expected, (seed, tier.name)
            firings, minute_short = firings + len(expected), minute_short + held_back
    assert firings > 10
    assert minute_short > 0


def test_the_classic_set_fires_while_both_windows_burn() -> None:
    steps, made = random_counts(5)
    counter, tier = Counter(steps, made, warm_s=0), CLASSIC[0]
    allowed = BY_NAME["ttft-p99"].allowed_bad
    burning = []
    for at_s in steps.ends_s.tolist():
        held = [_held(steps, made, at_s, window_s) for window_s in (tier.long_s, tier.short_s)]
        if all(one.total and one.bad > tier.factor * allowed * one.total for one in held):
            burning.append(at_s)
    firings = fired_classic(counter, tier, allowed)
    assert burning
    assert burning == [at for at in steps.ends_s.tolist() if any(one.begins_s <= at < one.ends_s for one in firings)]


# The counts.


def test_a_healthy_service_spends_less_than_its_budgets() -> None:
    for objective in OBJECTIVES:
        assert 0.1 < bad_share(objective, WELL) / float(objective.allowed_bad) < 0.6


def test_fates_are_shares_of_all_requests() -> None:
    for incident in INCIDENTS:
        for phase in incident.phases:
            assert phase.lasts_s % TICK_S == 0
            for objective in OBJECTIVES:
                assert sum(fate.share for fate in fates(objective, phase.condition)) <= 1 + 1e-9


def test_a_request_that_gets_nothing_is_bad_at_its_deadline() -> None:
    hung = Condition(unanswered=1.0)
    expected = {"ttft-p95": 0.5, "ttft-p99": 0.6, "answered": 30.0, "e2e-p95": 40.0, "e2e-p80": 20.0}
    for name, deadline_s in expected.items():
        lost = [fate for fate in fates(BY_NAME[name], hung) if fate.after_s > 0]
        assert [(fate.bad, fate.after_s) for fate in lost] == [(True, deadline_s)]
    assert fates(BY_NAME["tpot-p99"], hung) == ()


def test_a_hang_shows_in_each_objective_when_its_deadline_has_passed() -> None:
    hang = month(kind("total hang"), per_h=60_000, seed=1)
    first = int(np.searchsorted(hang.steps.starts_s, hang.begins_s)) + 1  # after the tick in which streams fell silent
    ticks = slice(first, first + 4)
    assert counts(hang, "ttft-p95").bad[ticks].min() > 10
    assert counts(hang, "answered").bad[first : first + 3].max() < 5
    assert counts(hang, "answered").bad[first + 3] > 10
    assert counts(hang, "ttft-p95").good[first + 1 : first + 700].max() == 0
    streams = counts(hang, "tpot-p99").bad
    assert streams[first : first + 2].sum() > 10
    assert streams[first + 4 : first + 700].max() == 0


def test_silence_is_silent_and_a_restart_is_not_known() -> None:
    idle = month(kind("idle"), per_h=6_000, seed=1)
    inside = (idle.steps.starts_s >= idle.begins_s) & (idle.steps.ends_s <= idle.ends_s)
    assert all(made.good[inside].max() == made.bad[inside].max() == 0 for made in idle.by_objective)
    restart = month(kind("restart"), per_h=600, seed=1)
    assert np.count_nonzero(~restart.steps.known) in (3, 4)


def test_the_same_seed_gives_the_same_month() -> None:
    first, second, other = (month(kind("deploy blip"), per_h=60, seed=seed) for seed in (1, 1, 2))
    assert all((a.bad == b.bad).all() for a, b in zip(first.by_objective, second.by_objective, strict=True))
    assert first.begins_s != other.begins_s


def test_steps_follow_each_other() -> None:
    steps = month(kind("KV thrash"), per_h=6, seed=3).steps
    assert (steps.starts_s[1:] == steps.ends_s[:-1]).all()
    assert set((steps.ends_s - steps.starts_s).tolist()) == {TICK_S, MINUTE_S}


# What a person is told.

PAGE = Firing(1000, 2000)


def test_pages_that_overlap_or_come_right_back_are_one() -> None:
    firings = [Firing(2299, 2500), PAGE, Firing(1500, 1600), Firing(2800, 2900)]
    assert joined(firings) == (Firing(1000, 2500), Firing(2800, 2900))


@pytest.mark.parametrize(
    ("ticket", "at_s"),
    [
        (Firing(100, 200), (100,)),
        (Firing(100, 150), ()),  # over before its group was told
        (Firing(960, 1900), ()),  # a page holds it back
        (Firing(930, 1900), (930,)),
        (Firing(1100, 2100), (2000,)),  # the page ends first
    ],
)
def test_a_ticket_is_held_back_by_a_page(ticket: Firing, at_s: tuple[int, ...]) -> None:
    assert told([ticket], [PAGE]) == at_s


HANG = month(kind("total hang"), per_h=6, seed=0)


def outcome(*pages: tuple[int, int], of: Month = HANG) -> Outcome:
    """What pages say, by when they begin and end after the incident's begin."""
    firings = tuple(Firing(of.begins_s + begins_s, of.begins_s + ends_s) for begins_s, ends_s in pages)
    return paging.outcome(of, OURS, {"answered": Alerts(firings, ())})


def test_pages_speak_of_an_incident_until_its_long_windows_are_over() -> None:
    lasts_s = HANG.incident.lasts_s
    found = outcome((-9000, -8000), (300, lasts_s + 60), (lasts_s + 2 * HOUR_S, lasts_s + 3 * HOUR_S))
    assert (found.page_after_s, found.pages, found.false_pages, found.reset_s) == (300, 2, 1, 60)
    late = outcome((lasts_s + 2 * HOUR_S, lasts_s + 3 * HOUR_S))
    assert (late.page_after_s, late.pages, late.false_pages) == (None, 1, 0)


def test_a_page_of_what_wants_none_is_false() -> None:
    blip = month(kind("deploy blip"), per_h=6, seed=0)
    found = outcome((10, 300), of=blip)
    assert (found.page_after_s, found.pages, found.false_pages) == (None, 0, 1)


GOOD = outcome((300, 9000))
SLOW_STOCK = replace(GOOD, tiers=STOCK, page_after_s_by_objective={"answered": 400})
AT_6 = "median time to page at 6/h, and the classic set's: answered"
BROKEN: dict[str, tuple[Callable[[], list[Outcome]], list[str]]] = {
    "nothing": (lambda: [GOOD, SLOW_STOCK], []),
    "a hang is missed": (
        lambda: [replace(GOOD, page_after_s=None), SLOW_STOCK],
        ["every total hang is paged: 0 of 1; 1 missed at 6/h"],
    ),
    "a false page": (
        lambda: [replace(GOOD, false_pages=1, false_pages_by_objective={"answered": 1}), SLOW_STOCK],
        ["no false page in 1 months: 1; 1 by answered"],
    ),
    "later than the classic set": (
        lambda: [
            GOOD,
            replace(SLOW_STOCK, page_after_s_by_objective={"answered": 299}, false_pages_by_objective={"answered": 1}),
        ],
        [
            "answered: median time to page 5 m 00 s, the classic set's 4 m 59 s; later at 6/h, over 1 months",
            f"{AT_6} 5 m 00 s (4 m 59 s); later: answered",
        ],
    ),
    "never": (
        lambda: [replace(GOOD, page_after_s_by_objective={"answered": None}), SLOW_STOCK],
        [
            "answered: median time to page never, the classic set's 6 m 40 s; later at 6/h, over 1 months",
            f"{AT_6} never (6 m 40 s); later: answered",
        ],
    ),
    "two pages": (
        lambda: [replace(GOOD, pages=2), SLOW_STOCK],
        ["one page for each incident: 2.00; 1 of 1 rang again within six hours"],
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_promise_is_said(broken: str) -> None:
    outcomes, said = BROKEN[broken]
    assert [verdict.text for verdict in promises.verdicts(outcomes()) if not verdict.kept] == said


def test_a_hang_of_fewer_bad_events_than_a_page_asks_for_is_counted_apart() -> None:
    assert GOOD.bad_most >= MIN_BAD_EVENTS
    few = replace(GOOD, page_after_s=None, bad_most=MIN_BAD_EVENTS - 1)
    (first, *_) = promises.verdicts([GOOD, few, SLOW_STOCK])
    assert str(first) == "kept        every total hang is paged: 1 of 1; 1 had fewer than 5 bad events"
    (alone, *_) = promises.verdicts([few, SLOW_STOCK])
    assert alone.kept is None


@pytest.mark.parametrize("stock_after_s", [299, 400], ids=["ours is later", "ours is sooner"])
def test_where_the_classic_set_pages_for_nothing_it_is_no_yardstick_and_both_figures_are_told(
    stock_after_s: int,
) -> None:
    often = {"page_after_s_by_objective": {"answered": stock_after_s}, "false_pages_by_objective": {"answered": 2}}
    elsewhere = [replace(one, per_h=600, seed=seed) for one in (GOOD, SLOW_STOCK) for seed in range(4)]
    said = [*promises.verdicts([GOOD, replace(SLOW_STOCK, **often), *elsewhere])]
    text = (
        f"{AT_6} 5 m 00 s ({duration(stock_after_s)}); "
        "no yardstick: the classic set pages 2.0 times a month for nothing there"
    )
    assert [str(verdict) for verdict in said if verdict.kept is None] == [f"not judged  {text}"]
    assert [str(verdict) for verdict in said if "at 600/h" in verdict.text] == [
        "kept        median time to page at 600/h, and the classic set's: answered 5 m 00 s (6 m 40 s)"
    ]


def test_where_the_classic_set_can_never_page_any_time_will_do() -> None:
    assert [name for name in BY_NAME if not stock_can_page(name)] == ["e2e-p80"]
    pair = [
        replace(one, page_after_s_by_objective={"e2e-p80": after_s}, false_pages_by_objective={"e2e-p80": 0})
        for one, after_s in ((GOOD, 500), (SLOW_STOCK, None))
    ]
    assert times_to_page_s(pair, "e2e-p80") == {OURS: [500], STOCK: [float("inf")]}
    assert all(verdict.kept for verdict in promises.verdicts(pair))


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (float("inf"), "never"), (59, "59 s"), (61, "1 m 01 s"), (7260, "2 h 01 m")]
)
def test_durations_are_written_for_people(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
