"""Lengths by hand and from traces."""

from pathlib import Path
from random import Random

import pytest

from capacity.certify.lengths import lengths
from capacity.errors import WorkloadError

TRACES = {
    "azure.csv": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109"
    ),
    "sample.csv": "t_ms,in_tok,out_tok\n0,374,44\n4315,396,109\n",
    "vidur.csv": "num_prefill_tokens,num_decode_tokens,num_total_tokens\n374,44,418\n396,109,505\n",
    "mooncake.jsonl": (
        '{"timestamp": 0, "input_length": 374, "output_length": 44, "hash_ids": [1]}\n'
        '{"timestamp": 4315, "input_length": 396, "output_length": 109, "hash_ids": [1]}\n'
    ),
}


@pytest.mark.parametrize("name", TRACES)
def test_pairs_of_a_trace_stay_together(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(TRACES[name])
    read = lengths(str(tmp_path / name))
    assert read.pairs == ((374, 44), (396, 109))
    assert read.mean == (385, 76.5)
    assert {read.draw(Random(seed)) for seed in range(20)} == set(read.pairs)
    assert (read.peak_rps is None) == (name == "vidur.csv")


def test_lengths_by_hand_are_drawn_from_their_spans() -> None:
    read = lengths("100-300:8")
    assert read.mean == (200, 8)
    drawn = [read.draw(Random(seed)) for seed in range(50)]
    assert {out for _, out in drawn} == {8}
    assert all(100 <= tokens <= 300 for tokens, _ in drawn)
    assert len({tokens for tokens, _ in drawn}) > 10


def test_the_peak_of_a_trace_is_its_busiest_five_minutes(tmp_path: Path) -> None:
    times_ms = [*range(0, 3_600_000, 10_000), *range(1_800_000, 2_100_000, 500)]
    path = tmp_path / "burst.csv"
    path.write_text("t_ms,in_tok,out_tok\n" + "".join(f"{at},10,10\n" for at in sorted(times_ms)))
    peak = lengths(str(path)).peak_rps
    assert peak == pytest.approx(2.1, rel=0.1)


REFUSED = {
    "neither": ("here", None, "cannot be read: No such file"),
    "lengths that are none": ("12:", None, "neither lengths nor a file"),
    "half of them": ("512", None, "neither lengths nor a file: write IN:OUT"),
    "no columns": ("a.csv", "x,y\n1,2\n", "has none of the columns"),
    "a word for a number": ("a.csv", "in_tok,out_tok\n1,2\n1,x\n", "row 3 cannot be read"),
    "no JSON": ("a.jsonl", "{\n", "row 1 cannot be read"),
    "nothing": ("a.csv", "in_tok,out_tok\n", "holds no requests"),
    "no tokens": ("a.csv", "in_tok,out_tok\n0,0\n", "holds no request with tokens"),
}


@pytest.mark.parametrize(("name", "text", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_workload_is_refused_by_name(name: str, text: str | None, says: str, tmp_path: Path) -> None:
    path = name if text is None else str(tmp_path / name)
    if text is not None:
        Path(path).write_text(text)
    with pytest.raises(WorkloadError, match=says):
        lengths(path)
