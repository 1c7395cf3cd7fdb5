"""Tracks: exact counts before histograms, one source a model, each hash for itself, `*` over all."""

from collector.judging.track import Track, tracks
from collector.values.deltas import Deltas
from collector.windowing.events import ACTIVE_S, EventKey
from collector.windowing.windows import Windows
from tests.collector import scene
from tests.collector.scene import NOW_S

HASH = scene.hash_of()


def found(windows: Windows) -> dict[str, list[Track]]:
    spec = windows.plan.specs[0]
    return tracks(windows, spec, spec.objectives[0], "")


def keys(*of: tuple[str, str, str]) -> set[EventKey]:
    return {EventKey("", "chat", model, "ttft", value, basis) for model, value, basis in of}


def test_an_objective_nobody_speaks_of_still_has_its_track() -> None:
    (track,) = found(scene.windows())["*"]
    assert (track.model, track.keys, track.basis) == ("*", (), "counts")


def test_each_model_has_a_track_and_all_together_one() -> None:
    windows = scene.windows()
    windows.add(Deltas(slo=(scene.slo(NOW_S, 1, 0, model="a"), scene.slo(NOW_S, 1, 0, model="b"))))
    by_model = found(windows)
    assert list(by_model) == ["*", "a", "b"]
    assert set(by_model["*"][0].keys) == keys(("a", HASH, "counts"), ("b", HASH, "counts"))
    assert set(by_model["b"][0].keys) == keys(("b", HASH, "counts"))


def test_a_model_without_counts_is_read_from_its_best_source_alone() -> None:
    windows = scene.windows()
    windows.add(
        Deltas(
            latencies=(
                scene.values(NOW_S, [0.1], model="b", source="engine"),
                scene.values(NOW_S, [0.1], model="b", source="otel"),
                scene.values(NOW_S, [0.1], model="a", source="engine"),
            )
        )
    )
    windows.add(Deltas(slo=(scene.slo(NOW_S, 1, 0, model="a"),)))
    by_model = found(windows)
    assert set(by_model["*"][0].keys) == keys(("a", HASH, "counts"), ("b", HASH, "engine"))
    assert [(model, by_model[model][0].basis) for model in ("*", "a", "b")] == [
        ("*", "histogram"),
        ("a", "counts"),
        ("b", "histogram"),
    ]


def test_two_hashes_are_judged_apart_until_the_old_one_ends() -> None:
    windows = scene.windows()
    windows.add(Deltas(slo=(scene.slo(NOW_S, 1, 0, hash_="old"), scene.slo(NOW_S + 60, 1, 0))))
    assert [{key.objective_hash for key in track.keys} for track in found(windows)["m"]] == [{HASH}, {"old"}]
    windows.add(Deltas(slo=(scene.slo(NOW_S + ACTIVE_S + 10, 1, 0),)))
    assert [{key.objective_hash for key in track.keys} for track in found(windows)["m"]] == [{HASH}]


def test_silence_ends_no_hash() -> None:
    windows = scene.windows()
    windows.add(Deltas(slo=(scene.slo(NOW_S, 1, 0, hash_="old"), scene.slo(NOW_S, 1, 0))))
    windows.advance(NOW_S + 7200)
    assert len(found(windows)["*"]) == 2


def test_a_histogram_that_goes_on_answers_for_counts_that_have_ended_until_they_come_again() -> None:
    windows = scene.windows()

    def answering(at_s: int, *, counted: bool) -> set[EventKey]:
        windows.advance(at_s)
        slo = (scene.slo(at_s, 1, 0),) if counted else ()
        windows.add(Deltas(slo=slo, latencies=(scene.values(at_s, [0.1], source="engine"),)))
        return set(found(windows)["m"][0].keys)

    assert answering(NOW_S, counted=True) == keys(("m", HASH, "counts"))
    assert answering(NOW_S + ACTIVE_S, counted=False) == keys(("m", HASH, "counts"))
    assert answering(NOW_S + ACTIVE_S + 10, counted=False) == keys(("m", HASH, "engine"))
    read = EventKey("", "chat", "m", "ttft", HASH, "engine")
    assert windows.events.held([read], 3600).good == 1, "what the counts saw is not read a second time"
    assert answering(NOW_S + ACTIVE_S + 20, counted=True) == keys(("m", HASH, "counts"))
