"""Traces of every known kind, read as what they say and no more."""

import re
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from capacity.errors import WorkloadError
from capacity.traces import DATE, INPUT, OUTPUT, TIME_S, Row, read

KINDS = {
    "Azure 2023": (
        "a.csv",
        """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:47.6805900,9,1
""",
        [Row(0.0, 374, 44), Row(1.0, 9, 1)],
    ),
    "Azure 2024": (
        "a.csv",
        """TIMESTAMP,ContextTokens,GeneratedTokens
2024-05-10 00:00:00.009930+00:00,2162,5
2024-05-10 00:00:00.509930+00:00,2399,6
""",
        [Row(0.0, 2162, 5), Row(0.5, 2399, 6)],
    ),
    "Mooncake": (
        "a.jsonl",
        """{"timestamp": 0, "input_length": 7, "output_length": 5, "hash_ids": [1]}
{"timestamp": 1500, "input_length": 8, "output_length": 6, "hash_ids": [1, 2]}
""",
        [Row(0.0, 7, 5), Row(1.5, 8, 6)],
    ),
    "BurstGPT": (
        "a.csv",
        """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,GPT-4,1,2,3,API log
""",
        [Row(0.0, 472, 18), Row(40.0, 1, 2)],
    ),
    "with a mark of its byte order": ("a.csv", "\ufefftime_s\n3\n4.5\n", [Row(0.0, None, None), Row(1.5, None, None)]),
    "with an empty line": ("a.jsonl", '{"t": 3000}\n\n{"t": 4500}\n\n', [Row(0.0, None, None), Row(1.5, None, None)]),
    "times alone": ("a.csv", "time_s\n3\n4.5\n", [Row(0.0, None, None), Row(1.5, None, None)]),
    "lengths alone": ("a.csv", "num_prefill_tokens,num_decode_tokens\n3,4\n", [Row(None, 3, 4)]),
}


DOCS = Path(__file__).parents[2] / "docs" / "capacity.md"


def columns_in_docs() -> dict[str, list[list[str]]]:
    """The names in each column of the table of formats: of time, of prompts and of answers, by format."""
    text = DOCS.read_text().partition("| trace | time | prompt | answer |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]
    return {name: [re.findall(r"`([^`]+)`", cell) for cell in cells] for name, *cells in rows}


def test_the_docs_name_every_column_that_is_read_and_no_other() -> None:
    named = list(zip(*columns_in_docs().values(), strict=True))
    assert [{name for cell in column for name in cell} for column in named] == [
        {DATE, *TIME_S},
        set(INPUT),
        set(OUTPUT),
    ]


@pytest.mark.parametrize("trace", columns_in_docs())
def test_a_trace_of_the_columns_in_the_docs_is_read(trace: str, tmp_path: Path) -> None:
    times, prompts, answers = columns_in_docs()[trace]
    for time_column in times or [""]:
        head = [name for name in (time_column, prompts[0], answers[0]) if name]
        said = ["2026-01-01 00:00:00", "7", "5"] if time_column == DATE else ["3", "7", "5"][-len(head) :]
        (tmp_path / "t.csv").write_text(f"{','.join(head)}\n{','.join(said)}\n")
        (row,) = read("--trace", tmp_path / "t.csv")
        assert (row.tokens_in, row.tokens_out, row.at_s is None) == (7, 5, not time_column)


def test_a_row_may_leave_out_how_long_its_request_was(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("time_s,input_tokens,output_tokens\n1,,\n2,7,\n")
    assert read("--trace", tmp_path / "t.csv") == [Row(1.0, None, None), Row(2.0, 7, None)]
    (tmp_path / "t.jsonl").write_text('{"t": 1000, "i": null}\n')
    assert read("--trace", tmp_path / "t.jsonl") == [Row(1.0, None, None)]
    (tmp_path / "t.csv").write_text("input_tokens,output_tokens\n7,5\n7,\n")
    assert read("--trace", tmp_path / "t.csv") == [Row(None, 7, 5), Row(None, 7, None)]


@pytest.mark.parametrize(("name", "text", "expected"), KINDS.values(), ids=KINDS.keys())
def test_a_trace_of_this_kind_is_read(name: str, text: str, expected: list[Row], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    rows = read("--trace", tmp_path / name)
    first_s = rows[0].at_s or 0.0
    shifted = [Row(None if r.at_s is None else round(r.at_s - first_s, 6), r.tokens_in, r.tokens_out) for r in rows]
    assert shifted == expected


RATES = "".join(
    f"{start},{rate},{cv},{family},{a},{b}\n"
    for start, rate, cv, family, a, b in (
        (0, 2.0, 1.0, "Gamma", 1.0, 0.5),
        (600, 8.0, 2.0, "Gamma", 0.25, 0.5),
        (1200, 4.0, 0.5, "Weibull", 2.1, 0.2823),
        (1800, 0.0, 0.0, "Gamma", 0.0, 0.0),
    )
)


def test_a_file_of_rates_is_drawn_from_window_by_window(tmp_path: Path) -> None:
    path = tmp_path / "client.csv"
    path.write_text(RATES)
    times = np.array([row.at_s for row in read("--trace", path)], dtype=float)
    counts = np.histogram(times, bins=[0, 600, 1200, 1800])[0] / 600
    assert counts == pytest.approx([2.0, 8.0, 4.0], rel=0.12)
    gaps = [np.diff(times[(times >= low) & (times < low + 600)]) for low in (0, 600, 1200)]
    assert [float(gap.std() / gap.mean()) for gap in gaps] == pytest.approx([1.0, 2.0, 0.5], rel=0.15)
    assert [row.at_s for row in read("--trace", path)] == times.tolist()


def test_rates_of_one_moment_are_taken_to_last_as_long_as_one_alone(tmp_path: Path) -> None:
    (tmp_path / "client.csv").write_text("0,2,1,Gamma,1,0.5\n" * 2)
    times = [row.at_s for row in read("--trace", tmp_path / "client.csv")]
    assert len(times) == pytest.approx(2 * 600 / 0.5, rel=0.1)


def test_a_date_without_a_zone_is_the_same_moment_wherever_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("TIMESTAMP,ContextTokens\n2023-10-29 00:59:00,1\n2023-10-29 01:01:00,1\n")
    monkeypatch.setenv("TZ", "Europe/Berlin")  # where an hour comes twice that night
    time.tzset()
    try:
        first, second = (row.at_s for row in read("--trace", tmp_path / "a.csv"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert first == datetime(2023, 10, 29, 0, 59, tzinfo=UTC).timestamp()
    assert second == first + 120


REFUSED = {
    "no file": ("none.csv", None, "cannot be read: No such file"),
    "no known column": ("a.csv", "x,y\n1,2\n", "has none of the columns TIMESTAMP, t_ms"),
    "a word for a time": ("a.csv", "t_ms,in_tok,out_tok\n1,1,1\nx,1,1\n", "row 3 cannot be read"),
    "a word for a time in JSON": ("a.jsonl", '{"t": 1}\n{"t": "x"}\n', "row 2 cannot be read"),
    "brackets without end": ("a.jsonl", "[" * 100_000, "row 1 cannot be read"),
    "a field without end": ("a.csv", f't_ms\n"{"x" * 200_000}"\n', "row 2 cannot be read"),
    "a line without end": ("a.csv", "x" * 1_100_000, "has a line of more than 1,048,576 characters"),
    "no time at all": ("a.csv", "t_ms,in_tok,out_tok\nnan,1,1\n", "row 2 cannot be read"),
    "too many tokens": ("a.csv", "t_ms,in_tok,out_tok\n1,99999999,1\n", "row 2 cannot be read"),
    "nothing": ("a.csv", "", "holds no requests"),
    "a family of its own": (
        "a.csv",
        "0,1,1,Gamma,1,1\n600,1,1,Pareto,1,1\n",
        "has a family other than Gamma and Weibull",
    ),
    "a parameter that is none": ("a.csv", "0,1,1,Gamma,nan,1\n", "or a parameter that is none"),
    "a parameter beyond all": ("a.csv", "0,1,1,Gamma,1,inf\n", "or a parameter that is none"),
    "a shape that no number can follow": ("a.csv", "0,1,1,Weibull,1e-9,1\n", "or a parameter that is none"),
    "a start that is none": ("a.csv", "nan,1,1,Gamma,1,1\n", "or a parameter that is none"),
    "a rate that is none": ("a.csv", "0,1,1,Gamma,1,1\n600,x,1,Gamma,1,1\n", "a row of rates cannot be read"),
    "not text": ("a.csv", b"\xff\xfe", "is not UTF-8 text"),
}


@pytest.mark.parametrize(("name", "text", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_trace_is_refused(name: str, text: str | bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(WorkloadError, match=says):
        read("--trace", path)


def test_no_trace_is_longer_than_can_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capacity.traces.MAX_ROWS", 3)
    (tmp_path / "a.csv").write_text("time_s\n" + "1\n" * 4)
    with pytest.raises(WorkloadError, match="holds more than 3 requests: use a part of it"):
        read("--trace", tmp_path / "a.csv")
    (tmp_path / "rates.csv").write_text("".join(RATES.splitlines(keepends=True)[:3]))
    with pytest.raises(WorkloadError, match="makes more than 3 requests: use a part of it"):
        read("--trace", tmp_path / "rates.csv")
    (tmp_path / "rates.csv").write_text(RATES)
    with pytest.raises(WorkloadError, match="holds more than 3 rates: use a part of it"):
        read("--trace", tmp_path / "rates.csv")
