"""Bytes to events: line ends, fields, limits, and that no split of the bytes matters."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.said import sse
from sidecar.said.sse import EventReader, LineReader, RawEvent, Reader, WholeReader
from tests.sidecar.streams import cut


def events_of(reader: Reader, *reads: bytes) -> list[RawEvent]:
    return [event for data in reads for event in reader.feed(data)] + reader.flush()


EVENTS: dict[str, tuple[bytes, list[RawEvent]]] = {
    "one event": (b"data: a\n\n", [(b"", b"a")]),
    "two events in one read": (b"data: a\n\ndata: b\n\n", [(b"", b"a"), (b"", b"b")]),
    "a name": (b"event: ping\ndata: a\n\n", [(b"ping", b"a")]),
    "a name does not outlive its event": (b"event: x\ndata: a\n\ndata: b\n\n", [(b"x", b"a"), (b"", b"b")]),
    "a name alone is no event": (b"event: x\n\ndata: a\n\n", [(b"", b"a")]),
    "several data lines are joined by LF": (b"data: a\ndata: b\n\n", [(b"", b"a\nb")]),
    "no blank after the colon": (b"data:a\n\n", [(b"", b"a")]),
    "one blank is taken away, no more": (b"data:   a\n\n", [(b"", b"  a")]),
    "an empty data line is an event with empty data": (b"data:\n\n", [(b"", b"")]),
    "a field without a colon": (b"data\n\n", [(b"", b"")]),
    "comments, id, retry and unknown fields say nothing": (b": c\nid: 1\nretry: 9\nx: y\ndata: a\n\n", [(b"", b"a")]),
    "a field's name is exact": (b"datax: a\nDATA: b\n data: c\n\n", []),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"", b"a"), (b"", b"b")]),
    "CRLF amid an event": (b"data: a\r\ndata: b\r\n\r\n", [(b"", b"a\nb")]),
    "CR": (b"data: a\r\rdata: b\r\r", [(b"", b"a"), (b"", b"b")]),
    "mixed line ends": (b"data: a\r\n\ndata: b\n\rdata: c\r\n\r", [(b"", b"a"), (b"", b"b"), (b"", b"c")]),
    "more blank lines than needed": (b"\n\n\ndata: a\n\n\n\ndata: b\n\n\n", [(b"", b"a"), (b"", b"b")]),
    "a byte order mark comes first and once": (
        b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n",
        [(b"", b"a"), (b"", b"c")],
    ),
    "U+2028, U+2029, U+0085, form feed and NUL end no line": (
        "data: \u2028\u2029\u0085\f\v\0\n\n".encode(),
        [(b"", "\u2028\u2029\u0085\f\v\0".encode())],
    ),
    "bytes that are no UTF-8": (b"data: \xff\xfe\n\n", [(b"", b"\xff\xfe")]),
    "the last blank line may be missing": (b"data: a\n", [(b"", b"a")]),
    "the last line end may be missing": (b"data: a\n\ndata: b", [(b"", b"a"), (b"", b"b")]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("sentence", EVENTS)
def test_events(sentence: str) -> None:
    data, expected = EVENTS[sentence]
    assert events_of(EventReader(), data) == expected


@pytest.mark.parametrize("sentence", EVENTS)
def test_events_byte_by_byte(sentence: str) -> None:
    data, expected = EVENTS[sentence]
    assert events_of(EventReader(), *(data[i : i + 1] for i in range(len(data)))) == expected


@pytest.mark.parametrize("sentence", EVENTS)
def test_events_with_more_behind(sentence: str) -> None:
    data, expected = EVENTS[sentence]
    assert events_of(EventReader(), data + b"\n\n", b"data: z\n\n") == [*expected, (b"", b"z")]


LINES: dict[str, tuple[bytes, list[RawEvent]]] = {
    "a line is an event": (b'{"a":1}\n{"b":2}\n', [(b"", b'{"a":1}'), (b"", b'{"b":2}')]),
    "CRLF and blank lines": (b"1\r\n\r\n\n 2 \n", [(b"", b"1"), (b"", b"2")]),
    "the last line end may be missing": (b"1\n2", [(b"", b"1"), (b"", b"2")]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("sentence", LINES)
def test_lines(sentence: str) -> None:
    data, expected = LINES[sentence]
    assert events_of(LineReader(), data) == expected
    assert events_of(LineReader(), *(data[i : i + 1] for i in range(len(data)))) == expected


def test_a_whole_body_is_one_event_at_its_end() -> None:
    reader = WholeReader()
    assert reader.feed(b' {"a"') == []
    assert reader.feed(b":1}\n") == []
    assert reader.flush() == [(b"", b'{"a":1}')]
    assert WholeReader().flush() == []


READERS: tuple[Callable[[], Reader], ...] = (EventReader, LineReader, WholeReader)
STREAM = st.lists(
    st.sampled_from([b"data: a", b"data:b", b"data", b"event: e", b": c", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b"x"])
).map(b"".join)


@pytest.mark.parametrize("make", READERS)
@given(data=STREAM | st.binary(max_size=200), places=st.lists(st.integers(0, 400), max_size=12))
def test_any_split_gives_the_same_events(make: Callable[[], Reader], data: bytes, places: list[int]) -> None:
    assert events_of(make(), *cut(data, places)) == events_of(make(), data)


def overlong(reader: Reader, limit: int) -> bytes:
    """An event over the limit, a good one before and after it."""
    long = b"x" * (limit + 1)
    if isinstance(reader, EventReader):
        return b"data: a\n\ndata: " + long + b"\n\ndata: b\n\n"
    return b"a\n" + long + b"\nb\n"


@pytest.mark.parametrize("make", [EventReader, LineReader])
@pytest.mark.parametrize("step", [1, 7, 1000, 10_000_000])
def test_an_event_over_the_limit_is_skipped_and_counted(
    make: Callable[[], Reader], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    reader = make()
    data = overlong(reader, 100)
    assert events_of(reader, *(data[i : i + step] for i in range(0, len(data), step))) == [(b"", b"a"), (b"", b"b")]
    assert reader.skipped == 1


@pytest.mark.parametrize("step", [1, 64, 10_000])
def test_many_data_lines_together_can_be_over_the_limit(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    reader = EventReader()
    data = b"data: 0123456789\n" * 10 + b"\ndata: b\n\n"
    assert events_of(reader, *(data[i : i + step] for i in range(0, len(data), step))) == [(b"", b"b")]
    assert reader.skipped == 1


def test_an_overlong_comment_is_no_event_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    reader = EventReader()
    data = b":" + b" " * 500 + b"\ndata: a\n\n"
    assert events_of(reader, *(data[i : i + 50] for i in range(0, len(data), 50))) == [(b"", b"a")]
    assert reader.skipped == 0


def test_a_line_without_end_is_held_up_to_the_limit_alone() -> None:
    for reader, held in ((EventReader(), "_line"), (LineReader(), "_line"), (WholeReader(), None)):
        for _ in range(40):
            reader.feed(b"data: " + bytes(100_000).replace(b"\0", b"x"))
        size = len(getattr(reader, held)._held) if held else len(reader._body)  # type: ignore[attr-defined]
        assert size <= sse.MAX_EVENT_BYTES + 200_000
        assert reader.flush() == []
        assert reader.skipped == 1


def test_the_limit_itself_is_within() -> None:
    exact = b"x" * (sse.MAX_EVENT_BYTES - 1)
    rng = random.Random(5)
    for reads in ([b"data: " + exact + b"\n\n"], cut(b"data: " + exact + b"\n\n", rng.choices(range(1 << 20), k=20))):
        reader = EventReader()
        assert events_of(reader, *reads) == [(b"", exact)]
        assert reader.skipped == 0
    whole = WholeReader()
    assert events_of(whole, b"x" * sse.MAX_BODY_BYTES) == [(b"", b"x" * sse.MAX_BODY_BYTES)]
