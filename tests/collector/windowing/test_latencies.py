"""Whom figures are wanted of: each latency, all models together where there are several, each in its windows."""

import numpy as np

from collector.values.deltas import LatencyKey
from collector.windowing.latencies import Latencies, Roster
from slo.signals import ALL_MODELS, TTFT_STRATA
from tests.collector import scene
from tests.collector.scene import NOW_S

WINDOWS_S = (300, 3600, 7200)


def latencies(*rows: object) -> Latencies:
    one = Latencies(
        WINDOWS_S, tick_s=10, now_s=NOW_S, kept_s=lambda service: WINDOWS_S[: 3 if service == "chat" else 2]
    )
    one.add(rows)  # type: ignore[arg-type]
    return one


def key(model: str, source: str = "proxy", signal: str = "ttft") -> LatencyKey:
    return LatencyKey("", "chat", model, signal, source)


def members(roster: Roster) -> dict[LatencyKey, set[LatencyKey]]:
    return {line: set(roster.members(number)) for number, line in enumerate(roster.lines)}


def test_one_model_is_a_line_and_several_are_one_more() -> None:
    one = latencies(scene.values(NOW_S, [0.1], model="b"), scene.values(NOW_S, [0.1], model="b", source="engine"))
    assert members(one.roster()) == {line: {line} for line in (key("b"), key("b", "engine"))}
    one.add([scene.values(NOW_S, [0.2], model="a")])
    together = {key(ALL_MODELS): {key("a"), key("b")}}
    assert members(one.roster()) == {line: {line} for line in (key("a"), key("b"), key("b", "engine"))} | together


def test_sums_over_models_pass_over_those_that_are_alone() -> None:
    models = {"a": "proxy", "b": "proxy", "c": "engine", "d": "otel", "e": "otel"}
    rows = [scene.values(NOW_S, [0.1], model=model, source=source) for model, source in models.items()]
    roster = latencies(*rows).roster()
    ones = np.array([[10 ** "abcde".index(line.model)] for line in roster.lines[:5]])
    lines = [line.source for line in roster.lines[5:]]
    several = roster.together(np.arange(5))
    assert several.lines.tolist() == [5, 6]
    assert dict(zip(lines, several.sums(ones)[:, 0].tolist(), strict=True)) == {"otel": 11000, "proxy": 11}


def test_sums_over_models_are_of_those_that_are_there() -> None:
    rows = [
        scene.values(NOW_S, [0.1], model=model, source=source) for source in ("otel", "proxy") for model in ("a", "b")
    ]
    roster = latencies(*rows).roster()
    several = roster.together(np.array([3]))
    assert (several.lines.tolist(), several.sums(np.array([[7]])).tolist()) == ([5], [[7]])
    none = roster.together(np.array([], dtype=np.int64))
    assert (none.lines.shape, none.sums(np.zeros((0, 3), dtype=np.int64)).shape) == ((0,), (0, 3))


def test_rows_are_in_the_order_of_their_key_and_of_the_windows_of_their_service() -> None:
    other = scene.of_service(scene.values(NOW_S, [0.1]), "aside")
    roster = latencies(scene.values(NOW_S, [0.1]), scene.values(NOW_S, [0.1], model="n"), other).roster()
    rows = list(zip(*roster.columns, strict=True))
    assert rows == sorted(rows)
    assert [row[5] for row in rows] == [*WINDOWS_S[:2], *WINDOWS_S * 3]
    assert [(run.first, run.until, run.several) for run in roster.runs] == [(0, 2, 2), (2, 11, 3)]


def test_the_roster_stays_until_something_new_is_heard_of() -> None:
    one = latencies(scene.values(NOW_S, [0.1]))
    roster = one.roster()
    one.add([scene.values(NOW_S + 10, [0.3])])
    assert one.roster() is roster
    one.add([scene.values(NOW_S, [0.3], censored=True)])
    assert one.roster() is not roster


def test_a_line_is_as_old_as_its_earliest_step() -> None:
    one = latencies(scene.values(NOW_S, [0.1], model="a"), scene.values(NOW_S - 100, [0.1], model="b"))
    one.add([scene.values(NOW_S - 50, [0.1], model="a")])
    roster = one.roster()
    ages = dict(zip(roster.lines, roster.firsts_s().tolist(), strict=True))
    assert ages == {key("a"): NOW_S - 50, key("b"): NOW_S - 100, key(ALL_MODELS): NOW_S - 100}


def test_latencies_by_prompt_length_have_their_own_windows_and_are_not_added_over_models() -> None:
    signal = TTFT_STRATA["to_1k"]
    rows = [scene.values(NOW_S, [0.1], model=model, signal=of) for model in "ab" for of in ("ttft", signal)]
    roster = latencies(*rows).roster()
    windows_s = {(row[2], row[3], row[5]) for row in zip(*roster.columns, strict=True)}
    assert windows_s == {
        *((model, "ttft", window_s) for model in ("a", "b", ALL_MODELS) for window_s in WINDOWS_S),
        *((model, signal, 300) for model in ("a", "b")),
    }
