"""What fits a template is what the long way calls one token: any text, any run, any recorded stream."""

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidecar.said import dialects, dialects_native, dialects_openai
from sidecar.said.exchange import Exchange
from sidecar.said.facts import ANSWER, REASONING, Event, Json
from sidecar.said.template import MAX_READ_BYTES, MAX_RUN_BYTES, Template, learn
from tests.sidecar.said.test_exchange import CAPTURED, STREAMS
from tests.sidecar.streams import MS, cut, play

PREFIX = b'data: {"id":"chat-1","model":"m","choices":[{"index":0,"delta":{"content":"'
SUFFIX = b'"},"logprobs":null,"finish_reason":null}]}\n\n'
Read = Callable[[Json], Event]

LEARNT: dict[str, tuple[bytes, bytes, bytes, Read, Event | None]] = {
    "chat": (PREFIX, b" the", SUFFIX, dialects_openai.chat_event, ANSWER),
    "escapes": (PREFIX, b'\\"\\n\\u4e2d', SUFFIX, dialects_openai.chat_event, ANSWER),
    "reasoning": (
        b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"',
        b"so",
        b'"}}]}\n\n',
        dialects_openai.chat_event,
        REASONING,
    ),
    "a completion": (
        b'data: {"id":"c","choices":[{"text":"',
        b"a",
        b'","index":0}]}\r\n\r\n',
        dialects_openai.completions_event,
        ANSWER,
    ),
    "Anthropic": (
        b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"text": "',
        b"a",
        b'", "type": "text_delta"}}\n\n',
        dialects_native.anthropic_event,
        ANSWER,
    ),
    "Ollama": (
        b'{"model":"m","message":{"role":"assistant","content":"',
        b"a",
        b'"},"done":false}\n',
        dialects_native.ollama_event,
        ANSWER,
    ),
    "a role": (PREFIX.replace(b'"content":"', b'"role":"'), b"assistant", SUFFIX, dialects_openai.chat_event, None),
    "a last token": (PREFIX, b"a", SUFFIX.replace(b"null}]", b'"stop"}]'), dialects_openai.chat_event, None),
    "two texts": (
        PREFIX + b'a","refusal":"',
        b"b",
        SUFFIX,
        dialects_openai.chat_event,
        None,
    ),
    "two events": (PREFIX, b"a", SUFFIX + PREFIX + b"b" + SUFFIX, dialects_openai.chat_event, None),
    "no JSON": (b"data: {", b"a", b"}\n\n", dialects_openai.chat_event, None),
    "nothing": (b"", b"[DONE]", b"", dialects_openai.chat_event, None),
    "a long read": (PREFIX, b"a" * MAX_READ_BYTES, SUFFIX, dialects_openai.chat_event, None),
}


@pytest.mark.parametrize("name", LEARNT)
def test_what_is_learnt(name: str) -> None:
    prefix, text, suffix, event, fact = LEARNT[name]
    template = learn(prefix + text + suffix, event)
    if fact is None:
        assert template is None
        return
    assert template is not None
    assert template.fact is fact
    assert template.read(text) == prefix + text + suffix
    assert (template.prefix, template.suffix) == (prefix, suffix)
    assert template.frames(prefix + b"another" + suffix)
    assert not template.frames(prefix + suffix)
    assert not template.frames(b"x" + prefix + b"another" + suffix)
    assert not template.frames(prefix + b"another" + suffix + b"x")
    assert template.is_text([text, b"another"])
    assert not template.is_text([text, b""])


def test_a_run_has_a_limit() -> None:
    template = Template(PREFIX, SUFFIX, ANSWER)
    text = b"x" * (MAX_RUN_BYTES // 2)
    assert template.is_text([text])
    assert not template.is_text([text, text, text])


PIECES = st.one_of(
    st.sampled_from(
        [b"", b"x", b'"', b"\\", b'\\"', b"\\\\", b'","', b',"y', b"\n", b"\n\n", b"\xff", b"\xc3\xa4", b"\\u00"]
    ),
    st.binary(max_size=3),
)
TEXTS = st.lists(PIECES, max_size=4).map(b"".join)


@settings(max_examples=400)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
@example(texts=[b"x\\", b',"y'])
@example(texts=[b'x","y', b"z\\"])
@example(texts=[b'a"},"finish_reason":"stop"}]}\n\ndata: {"x":"'])
def test_what_is_a_text_is_a_token_the_long_way_too(texts: list[bytes]) -> None:
    template = Template(PREFIX, SUFFIX, ANSWER)
    if template.is_text(texts):
        exchange = started()
        assert [exchange.feed(template.read(text), 1) for text in texts] == [1] * len(texts)
        exchange.response_ended(2)
        assert exchange.record().unparsed_events == 0


@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=5), ascii_only=st.booleans()
)
def test_every_text_that_a_server_can_write_is_one(texts: list[str], ascii_only: bool) -> None:
    inner = [json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode() for text in texts]
    assert Template(PREFIX, SUFFIX, ANSWER).is_text(inner)


# An exchange that is told of reads by their texts.


def started() -> Exchange:
    dialect = dialects.recognise(b"/v1/chat/completions")
    assert dialect is not None
    exchange = Exchange(dialects.read_ask(dialect, b'{"model":"m","stream":true}'), 0)
    exchange.response_started(200, "text/event-stream", at_ns=0)
    return exchange


def tell(exchange: Exchange, reads: list[tuple[int, bytes]], size: int) -> int:
    """Feed reads, those of a template by their texts and at most `size` together; how many went that way."""
    texts: list[bytes] = []
    times_ns: list[int] = []
    by_text = 0
    for at_ns, read in [*reads, (0, b"")]:
        template = exchange.template
        if template is not None and template.frames(read) and len(texts) < size:
            texts.append(read[len(template.prefix) : len(read) - len(template.suffix)])
            times_ns.append(at_ns)
            continue
        if texts:
            before = exchange.token_events
            assert exchange.feed_texts(texts, times_ns) == exchange.token_events - before
            by_text += len(texts)
            texts, times_ns = [], []
        exchange.feed_and_learn(read, at_ns)
    return by_text


@pytest.mark.parametrize("name", STREAMS)
@settings(max_examples=20)
@given(
    size=st.integers(1, 40),
    places=st.lists(st.lists(st.integers(0, 5000), max_size=2), min_size=1, max_size=5),
)
def test_texts_give_the_record_that_reads_give(name: str, size: int, places: list[list[int]]) -> None:
    stream = STREAMS[name]
    whole = list(stream.reads)
    split = [(t, piece) for i, (t, data) in enumerate(whole) for piece in cut(data, places[i % len(places)])]
    for reads in (whole, split):
        exchange = stream.started()
        tell(exchange, reads, size)
        exchange.response_ended(stream.end_ns)
        assert exchange.record() == play(stream)


@given(texts=st.lists(TEXTS, min_size=1, max_size=6), size=st.integers(1, 4))
def test_broken_texts_give_the_record_that_reads_give(texts: list[bytes], size: int) -> None:
    whole = [PREFIX + text + SUFFIX for text in (b"a", b"b", b"c", *texts, b"d")]
    one, other = started(), started()
    for at_ns, read in enumerate(whole):
        one.feed(read, at_ns)
    assert tell(other, list(enumerate(whole)), size) > 0
    for exchange in (one, other):
        exchange.response_ended(100)
    assert one.record() == other.record()


def test_most_of_a_recorded_stream_goes_by_its_texts() -> None:
    stream, _ = CAPTURED["C-hf_chat"]
    assert tell(stream.started(), list(stream.reads), 32) >= len(stream.reads) - 4


def numbered(number: int) -> bytes:
    return b'data: {"n":%d,"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n' % number


def test_a_stream_whose_events_all_differ_is_soon_held_to_have_no_template() -> None:
    exchange = started()
    for number in range(100):
        assert exchange.feed_and_learn(numbered(number), number * MS) == 1
    assert not exchange.may_learn


def test_a_form_that_was_of_use_lets_the_next_be_learnt() -> None:
    exchange = started()
    exchange.feed_and_learn(numbered(0), 0)
    for number in range(1, 100):
        assert exchange.feed_and_learn(numbered(number), number * MS) == 1
        assert exchange.feed_texts([b"y", b"z"], [number * MS + 1, number * MS + 2]) == 2
        assert exchange.may_learn
    exchange.response_ended(100 * MS)
    assert exchange.record().token_events == 298
    assert exchange.record().longest_gap_s == MS / 1e9


def test_texts_without_a_form_are_nothing() -> None:
    exchange = started()
    assert exchange.template is None
    assert exchange.feed_texts([b"x"], [1]) == 0
