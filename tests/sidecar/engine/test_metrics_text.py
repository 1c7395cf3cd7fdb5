"""Metrics pages as they really come, held against the reference parser where it can read them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sidecar.engine import metrics_text
from sidecar.engine.metrics_text import MAX_LINE_CHARS, Page, PageReader, Sample, read_page
from tests.sidecar.streams import CAPTURES

PAGES: dict[str, tuple[bytes, dict[str, list[Sample]], int]] = {
    "a plain value": (b"up 1\n", {"up": [Sample({}, 1.0)]}, 0),
    "no last line end": (b"up 1", {"up": [Sample({}, 1.0)]}, 0),
    "labels in any order, with a comma behind": (
        b'x{b="2",a="1",} 3\n',
        {"x": [Sample({"a": "1", "b": "2"}, 3.0)]},
        0,
    ),
    "blanks everywhere": (b'x { a = "1" , b = "2" }   3  \n', {"x": [Sample({"a": "1", "b": "2"}, 3.0)]}, 0),
    "empty labels": (b"x{} 3\n", {"x": [Sample({}, 3.0)]}, 0),
    "CRLF line ends": (b"x 1\r\ny 2\r\n", {"x": [Sample({}, 1.0)], "y": [Sample({}, 2.0)]}, 0),
    "a timestamp": (b"x 1 1790000000000\n", {"x": [Sample({}, 1.0)]}, 0),
    "an exemplar": (
        b'x_bucket{le="1"} 5 # {trace_id="a}b"} 0.67 1790000000.1\n',
        {"x_bucket": [Sample({"le": "1"}, 5.0)]},
        0,
    ),
    "OpenMetrics' end": (b"# TYPE x gauge\n# UNIT x s\nx 1\n# EOF\n", {"x": [Sample({}, 1.0)]}, 0),
    "colons in names": (b"vllm:x 1e3\n", {"vllm:x": [Sample({}, 1000.0)]}, 0),
    "escapes in labels": (
        rb'x{a="q\"q",b="s\\s",c="l\nl"} 1' + b"\n",
        {"x": [Sample({"a": 'q"q', "b": "s\\s", "c": "l\nl"}, 1.0)]},
        0,
    ),
    "a quote that nobody escaped": (
        b'x{model="org/mo"del",engine="0"} 1\ny 2\n',
        {"x": [Sample({"model": 'org/mo"del', "engine": "0"}, 1.0)], "y": [Sample({}, 2.0)]},
        0,
    ),
    "an unescaped quote in the last label": (b'x{a="1",m="b"c"} 1\n', {"x": [Sample({"a": "1", "m": 'b"c'}, 1.0)]}, 0),
    "braces and commas in a label": (b'x{m="a,b}c{d"} 1\n', {"x": [Sample({"m": "a,b}c{d"}, 1.0)]}, 0),
    "C04 NaN, -nan and infinities are dropped, the rest stays": (
        b"a -nan\nb 2\nc_ratio +Inf\nd_ratio Nan\ne -Inf\n",
        {"b": [Sample({}, 2.0)]},
        4,
    ),
    "a line that is none": (b"x\n{} 3\n7 7\nx{a=1} 2\nx abc\ny 1\n", {"y": [Sample({}, 1.0)]}, 5),
    "bytes that are no UTF-8": (b'x{a="\xff"} 1\n', {"x": [Sample({"a": "\ufffd"}, 1.0)]}, 0),
    "a line separator inside a label ends no line": (
        'x{a="l\u2028l"} 1\n'.encode(),
        {"x": [Sample({"a": "l\u2028l"}, 1.0)]},
        0,
    ),
    "a line longer than any engine writes": (
        b'x{a="' + b"a" * MAX_LINE_CHARS + b'"} 1\ny 1\n',
        {"y": [Sample({}, 1.0)]},
        1,
    ),
    "nothing": (b"", {}, 0),
}


@pytest.mark.parametrize("sentence", PAGES)
def test_pages(sentence: str) -> None:
    text, samples, dropped = PAGES[sentence]
    page = read_page(text)
    assert page.samples == samples
    assert page.dropped == dropped


@pytest.mark.parametrize("name", ["vllm_metrics_after.txt", "llamasrv_metrics_busy.txt", "litellm_metrics.txt"])
def test_recorded_pages_are_read_as_the_reference_parser_reads_them(name: str) -> None:
    text = (CAPTURES / name).read_bytes()
    reference = [
        (sample.name.removesuffix("_total"), sample.labels, float(sample.value))
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if abs(sample.value) != float("inf") and sample.value == sample.value
    ]
    page = read_page(text)
    found = [
        (name.removesuffix("_total"), sample.labels, sample.value)  # the reference gives it to every counter
        for name, samples in page.samples.items()
        for sample in samples
    ]
    assert sorted(map(str, found)) == sorted(map(str, reference))


def test_only_what_is_wanted_is_kept_and_the_rest_is_still_checked() -> None:
    text = b'a 1\nb{x="}"} 2\nc NaN\nd{x="y"} nan\n'
    page = read_page(text, {"b"})
    assert page.samples == {"b": [Sample({"x": "}"}, 2.0)]}
    assert page.dropped == 2
    assert "b" in page
    assert "a" not in page


@given(
    st.lists(
        st.text(alphabet='x{}="\\, 1#a', max_size=20) | st.sampled_from(['x{a="1"} 2', 'x{a="1"} 3 17', "a 1", "x nan"])
    )
)
def test_a_reader_that_knows_the_lines_reads_as_one_that_does_not(lines: list[str]) -> None:
    text = "\n".join(lines).encode()
    for wanted in (None, {"x"}):
        reader = PageReader(wanted)
        assert [reader.read(text) for _ in range(3)] == [read_page(text, wanted)] * 3


def test_a_reader_takes_new_values_and_new_series() -> None:
    reader = PageReader({"x"})
    for value in (1.0, 2.5, -3.0):
        page = reader.read(f'x{{a="1"}} {value}\nx{{a="{value}"}} 7\ny 1\n'.encode())
        assert [sample.value for sample in page.samples["x"]] == [value, 7.0]
    assert reader.read(b'x{a="1"} NaN\ny oops\n') == Page({}, 2)


def test_a_reader_remembers_no_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_text, "MAX_KNOWN", 10)
    reader = PageReader()
    for number in range(100):
        assert len(reader.read(f'x{{a="{number}"}} 1\n'.encode()).samples["x"]) == 1
    assert len(reader._known) <= 10


def test_a_reader_remembers_no_line_whose_end_is_ever_new() -> None:
    reader = PageReader({"x"})
    for number in range(3):
        reader.read(f'y 1 {number}\ny{{a="1"}} 2 # {{trace_id="{number}"}} 3\nx 1 {number}\n'.encode())
    assert reader._known == {}


def test_no_more_samples_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_text, "MAX_SAMPLES", 3)
    page = read_page(b"x 1\n" * 5)
    assert len(page.samples["x"]) == 3
    assert page.dropped == 2


@given(values=st.dictionaries(st.text(max_size=12), st.floats(-1e9, 1e9), min_size=1, max_size=4))
def test_whatever_label_values_the_reference_writes_come_back(values: dict[str, float]) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("g", "h", ["model"], registry=registry)
    for model, value in values.items():
        gauge.labels(model).set(value)
    page = read_page(generate_latest(registry))
    assert {sample.labels["model"]: sample.value for sample in page.samples["g"]} == values
    assert page.dropped == 0


@given(text=st.binary(max_size=200) | st.text(alphabet='x{}="\\, \n1#', max_size=80).map(str.encode))
def test_any_bytes_are_a_page(text: bytes) -> None:
    page = read_page(text)
    assert page.dropped + sum(map(len, page.samples.values())) <= text.count(b"\n") + 1


RUNS = {
    "blanks behind a value": b'x{a="a"' + b" " * 200_000 + b"y",
    "blanks before a label": b"x{" + b" " * 200_000 + b"9",
    "blanks behind a number": b"x 1" + b" " * 200_000 + b"y",
    "quotes": b'x{a="' + b'"b' * 100_000,
    "quotes that may close": b'x{a="' + b'",b="' * 50_000,
}


@pytest.mark.parametrize("case", RUNS)
def test_no_line_takes_the_square_of_its_length(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that did took a minute, and while a pattern is matched nothing else in the process runs."""
    monkeypatch.setattr(metrics_text, "MAX_LINE_CHARS", 1 << 20)
    began_s = time.monotonic()
    assert read_page(RUNS[case]).dropped == 1
    assert time.monotonic() - began_s < 20


def test_long_texts_are_not_kept() -> None:
    reader = PageReader()
    for number in range(100):
        reader.read(b'x{a="%s%d"} 1\n' % (b"a" * 2000, number))
    assert len(reader._known) == 0
