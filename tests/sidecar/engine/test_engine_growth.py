"""What comes between two pages: from where counting begins, over restarts, renames, ranks and pages that lack lines."""

import pytest

from sidecar.counting.histogram import EdgeBuckets
from sidecar.engine import engine_growth
from sidecar.engine.engine_growth import Grower
from slo.signals import TOKEN_TYPE, TOKENS, TPOT, TTFT
from tests.sidecar.engine_pages import RUNNING, VLLM, engine, histogram, page, ttft

M = 'engine="0",model_name="m"'
OUT = (TOKEN_TYPE, "output")


def tokens(count: int, labels: str = M) -> str:
    return f"vllm:generation_tokens_total{{{labels}}} {count}"


def fast_and_slow(pages: list[str], model: str | None = "m") -> list[tuple[int, int] | None]:
    """What each page brings of `engine_pages.ttft`: requests within 0.5 s and above."""
    grower = Grower()
    found = [grower.page(page(text), VLLM).histograms.get((TTFT, model)) for text in pages]
    return [None if one is None else (sum(one.counts[:-1]), one.counts[-1]) for one in found]


HISTORIES: dict[str, tuple[list[str], list[tuple[int, int] | None]]] = {
    "what the engine counted before it was watched is nobody's": (
        [ttft(100, 7), ttft(103, 8), ttft(103, 8)],
        [(0, 0), (3, 1), (0, 0)],
    ),
    "a series that comes with its first request counts whole": (
        [RUNNING, ttft(2, 1), ttft(3, 1)],
        [None, (2, 1), (1, 0)],
    ),
    "a restart counts from 0": ([ttft(9, 9), ttft(1, 2), ttft(2, 2)], [(0, 0), (1, 2), (1, 0)]),
    "a restart with more behind it than before is known by the start of its process": (
        [
            f"process_start_time_seconds 100\n{ttft(1, 0)}",
            f"process_start_time_seconds 100.4\n{ttft(2, 0)}",
            f"process_start_time_seconds 250\n{ttft(5, 0)}",
            f"process_start_time_seconds 250\n{ttft(6, 0)}",
        ],
        [(0, 0), (1, 0), (5, 0), (1, 0)],
    ),
    "C10 a page that lacks a series is waited out": (
        [ttft(5, 0), RUNNING, ttft(9, 1)],
        [(0, 0), None, (4, 1)],
    ),
    "C10 a page of another exporter is no beginning": (
        ["python_info 1", ttft(5, 0), "python_info 1", ttft(9, 1)],
        [None, (0, 0), None, (4, 1)],
    ),
    "one rank restarts, the other counts on": (
        [
            "\n".join(ttft(n, 0, labels=f'engine="{rank}",model_name="m"') for rank, n in enumerate(counts))
            for counts in ((50, 10), (52, 3), (53, 4))
        ],
        [(0, 0), (5, 0), (2, 0)],
    ),
    "several processes tell one count, and a new one of them nothing": (
        [
            "\n".join(ttft(n, 0, labels=f'{M},pid="{pid}"') for pid, n in pids)
            for pids in (((1, 5), (2, 0)), ((1, 8), (2, 0)), ((1, 8), (2, 0), (3, 0)), ((2, 0), (3, 9)))
        ],
        [(0, 0), (3, 0), (0, 0), (1, 0)],
    ),
    "a page without the sum is waited out": (
        [ttft(5, 0), ttft(7, 0).replace("_sum", "_sum_") + "\n", ttft(8, 0)],
        [(0, 0), None, (3, 0)],
    ),
}


@pytest.mark.parametrize("sentence", HISTORIES)
def test_histories(sentence: str) -> None:
    pages, expected = HISTORIES[sentence]
    assert fast_and_slow(pages) == expected


def test_c11_counters_grow_over_a_restart() -> None:
    grower = Grower()
    grown = [grower.page(page(tokens(count)), VLLM).counts[TOKENS, (OUT,), "m"] for count in (100, 110, 120, 5, 15)]
    assert grown == [0, 10, 10, 5, 10]


def test_counters_of_ranks_reset_alone_and_add_up() -> None:
    grower = Grower()
    pages = [
        "\n".join(tokens(count, f'engine="{rank}",model_name="m"') for rank, count in enumerate(counts))
        for counts in ((7, 100), (9, 2))
    ]
    assert [grower.page(page(text), VLLM).counts[TOKENS, (OUT,), "m"] for text in pages] == [0, 4]


def test_a_name_that_changed_with_the_version_is_a_new_series() -> None:
    grower = Grower()
    sglang = engine("sglang")
    pages = [
        histogram(f"sglang{mark}time_to_first_token_seconds", {"0.1": count, "+Inf": count}, labels='model_name="m"')
        for mark, count in ((":", 90), (":", 94), ("_", 3), ("_", 5))
    ]
    assert [grower.page(page(text), sglang).histograms[TTFT, "m"].count for text in pages] == [0, 4, 3, 2]


def test_another_engine_begins_anew() -> None:
    grower = Grower()
    other = histogram("lmdeploy:time_to_first_token_seconds", {"1": 800, "+Inf": 800}, labels='model_name="m"')
    for text, name, count in ((ttft(5, 0), "vllm", 0), (ttft(6, 0), "vllm", 1), (other, "lmdeploy", 0)):
        assert grower.page(page(text), engine(name)).histograms[TTFT, "m"].count == count


def test_ranks_with_other_edges_add_up_at_the_shared_ones() -> None:
    name = "vllm:time_to_first_token_seconds"
    one = histogram(name, {"0.25": 1, "0.5": 2, "+Inf": 2}, labels='engine="0",model_name="m"')
    two = histogram(name, {"0.5": 4, "1.0": 5, "+Inf": 6}, labels='engine="1",model_name="m"')
    grower = Grower()
    grower.page(page(RUNNING), VLLM)
    assert grower.page(page(one, two), VLLM).histograms[TTFT, "m"] == EdgeBuckets((0.5,), (6, 2), 2.0)


def test_ranks_without_any_edge_in_common_say_nothing() -> None:
    name = "vllm:time_to_first_token_seconds"
    lines = [
        histogram(name, {edge: 1, "+Inf": 1}, labels=f'engine="{edge}",model_name="m"') for edge in ("0.25", "0.5")
    ]
    assert Grower().page(page(*lines), VLLM).histograms == {}


def test_an_answer_of_one_token_has_no_time_per_token() -> None:
    def at(values: int, single: int) -> str:
        tpot = histogram(
            "vllm:request_time_per_output_token_seconds", {"0.01": values, "0.05": values + 2, "+Inf": values + 2}
        )
        return f"{tpot}\n{histogram('vllm:request_generation_tokens', {'1.0': single, '2.0': values, '+Inf': values})}"

    grower = Grower()
    grower.page(page(at(10, 4)), VLLM)
    assert grower.page(page(at(16, 7)), VLLM).histograms[TPOT, "m"].counts == (3, 0, 0)


def test_models_stay_apart() -> None:
    grower = Grower()
    for expected in ((0, 0), (1, 2)):
        lines = (ttft(expected[0], 0, labels='model_name="a"'), ttft(expected[1], 0, labels='model_name="b"'))
        found = grower.page(page(*lines), VLLM).histograms
        assert (found[TTFT, "a"].count, found[TTFT, "b"].count) == expected


def test_series_beyond_the_limit_are_not_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_growth, "MAX_SERIES", 2)
    grower = Grower()
    lines = [f'vllm:request_success_total{{finished_reason="stop",model_name="{model}"}} 1' for model in "abcd"]
    assert {key[2] for key in grower.page(page(*lines), VLLM).counts} == {"a", "b"}
    assert {key[2] for key in grower.page(page(*reversed(lines)), VLLM).counts} == {"a", "b"}
