"""How a replay is told: a table for people, an object for programs."""

import io
import json
from dataclasses import replace

from rich.console import Console

from collector.replaying import replay
from collector.replaying.replay import Report, replayed
from collector.replaying.replay_past import Fired, Untold
from collector.replaying.replay_report import Replay, as_json, as_table
from slo.signals import ALL_MODELS
from tests.collector.replaying import test_replay as made
from tests.collector.scene import NOW_S, TICK_S

STORED = Fired("", "chat", ALL_MODELS, "ttft", "fast", "page", made.START_S + 60, made.START_S + 90)


def report() -> Report:
    one = made.past([(at_s, 5, 5) for at_s in range(made.START_S, NOW_S, TICK_S)])
    return replayed(one, replay.moments([one], to_s=NOW_S), from_s=made.START_S, to_s=NOW_S)


def found(*reports: Report) -> Replay:
    untold = (Untold("chat", "up", "none are stored"),)
    return Replay(made.START_S, NOW_S, reports or (report(),), untold, (STORED,))


def drawn(width: int, *reports: Report) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(as_table(found(*reports), width))
    return file.getvalue()


def test_programs_read_every_figure_and_no_nan() -> None:
    said = json.loads(json.dumps(as_json(found()), allow_nan=False))
    (service,) = said["services"]
    assert (service["service"], service["incidents"], service["incidents_stored"]) == ("chat", 1, 1)
    (one,) = service["objectives"]
    assert (one["good"], one["bad"], one["bad_share"], one["basis"]) == (9000, 9000, 0.5, "counts")
    assert one["budget_remaining"] < 1
    assert one["budget_lowest"] <= one["budget_remaining"]
    assert (one["pages"], one["pages_stored"], one["tickets_stored"]) == (2, 1, 0)
    assert {tier["name"] for tier in one["tiers"]} == {"fast", "medium", "slow", "long"}
    assert one["tiers"][0]["firings"][0]["to_s"] is None
    assert said["unknown"] == [{"service": "chat", "objective": "up", "why": "none are stored"}]


def test_people_read_what_it_costs_at_any_width() -> None:
    for width in (80, 128, 200):
        text = drawn(width)
        assert "1 incident would have paged, 1 did" in text
        assert "2 (was 1)" in text
        assert "50%" in text
        assert "chat/up: unknown: none are stored" in text
        assert all(len(line) <= width for line in text.splitlines())


def test_a_model_may_have_any_name() -> None:
    one = report()
    named = [replace(one, past=replace(one.past, model=model)) for model in ("x[fp8]", "[/]\x1b[2J")]
    for width in (80, 200):
        text = drawn(width, *named)
        assert "x[fp8]" in text
        assert "[/]\\x1b[2J" in text


def test_what_began_before_the_stretch_is_not_counted_again() -> None:
    one = made.past([(at_s, 5, 5) for at_s in range(made.START_S, NOW_S, TICK_S)])
    late = replayed(one, replay.moments([one], to_s=NOW_S), from_s=NOW_S - 3600, to_s=NOW_S)
    said = as_json(Replay(NOW_S - 3600, NOW_S, (late,), (), (STORED,)))["services"][0]
    assert (said["incidents"], said["incidents_stored"]) == (0, 0)
    assert said["objectives"][0]["tiers"][0]["firing_s"] == 3600
