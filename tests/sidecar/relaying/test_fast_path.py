"""FastPath reads: what is one of them, and that telling them late and together says what telling each at once does."""

from dataclasses import dataclass, field

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.http.http_head import RequestHead
from sidecar.relaying.client import Leftovers
from sidecar.relaying.fast_path import LONGEST_BYTES, RUN, FastPath
from sidecar.relaying.relay import Relay
from sidecar.said.dialects import CHAT
from sidecar.said.exchange import Exchange
from sidecar.said.facts import ANSWER
from sidecar.said.template import Template
from sidecar.transport.upstream import Connection, Pool, Target
from tests.sidecar.rig import STOP, AtOnce, chunk, delta, proxied
from tests.sidecar.said.test_exchange import STREAMS
from tests.sidecar.streams import Stream

PREFIX, SUFFIX = delta("\0").split(b"\0")
FORM = Template(PREFIX, SUFFIX, ANSWER)


@dataclass
class Told:
    """Stands for the watch: keeps what it is told."""

    runs: list[tuple[list[bytes], list[int]]] = field(default_factory=list)

    def texts(self, texts: list[bytes], at_ns: list[int]) -> None:
        self.runs.append((texts, at_ns))


class Sink(Leftovers):
    """A client that keeps what it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.out = self
        self.got: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.got.append(data)


def fast_path(*, chunked: bool = True, client: Leftovers | None = None) -> tuple[FastPath, Told]:
    told = Told()
    client = client or Leftovers()
    found = FastPath(client, told, AtOnce(), chunked=chunked)  # type: ignore[arg-type]  the one call that it makes
    found.expect(FORM)
    return found, told


READS = {
    "a chunk of the template": (chunk(delta("a")), True),
    "a long text": (chunk(delta("a" * 2000)), True),
    "an escape": (chunk(delta('\\"\\n')), True),
    "no text": (chunk(delta("")), False),
    "another size": (b"7f" + chunk(delta("a"))[2:], False),
    "a size in capitals": (chunk(delta("a" * 100)).replace(b"af", b"AF", 1), None),
    "a size with a zero before it": (b"0" + chunk(delta("a")), False),
    "a chunk extension": (chunk(delta("a")).replace(b"\r\n", b";x=y\r\n", 1), False),
    "two chunks": (chunk(delta("a")) + chunk(delta("bc" * 300)), True),
    "a chunk and a half": (chunk(delta("a")) + chunk(delta("b"))[:-3], False),
    "a chunk and the size of another": (chunk(delta("a")) + b"af\r\n", False),
    "a chunk and another size": (chunk(delta("a")) + b"7f" + chunk(delta("b"))[2:], False),
    "a chunk and one without text": (chunk(delta("a")) + chunk(delta("")), False),
    "a chunk and two events in one": (chunk(delta("a")) + chunk(delta("b") + delta("c")), False),
    "a chunk and the end": (chunk(delta("a")) + chunk(STOP) + b"0\r\n\r\n", False),
    "a chunk and a signed size": (chunk(delta("a")) + b"+" + chunk(delta("b")), False),
    "two events in a chunk": (chunk(delta("a") + delta("b")), False),
    "half of a chunk": (chunk(delta("a"))[:-9], False),
    "a chunk without its end": (chunk(delta("a"))[:-2], False),
    "the end": (chunk(STOP) + b"0\r\n\r\n", False),
    "nothing": (b"", False),
    "longer than is looked at": (chunk(delta("a" * LONGEST_BYTES)), False),
}


@pytest.mark.parametrize("name", READS)
def test_what_is_alike(name: str) -> None:
    read, expected = READS[name]
    client = Sink()
    if expected is None:
        expected = read == chunk(delta("a" * 100))  # the size happens to have no letter
    found, told = fast_path(client=client)
    assert found.take(read, 5) is expected
    assert client.got == [read] * expected
    latest = found.tell()
    assert (latest is not None) is expected
    assert len(told.runs) == expected


def test_prefix_and_suffix_may_not_share_a_byte() -> None:
    told = Told()
    found = FastPath(Leftovers(), told, AtOnce(), chunked=False)  # type: ignore[arg-type]
    found.expect(Template(b'{"a":"', b'"":"x"}', ANSWER))
    assert not found.take(b'{"a":"":"x"}', 1)


def test_reads_are_told_in_runs_in_their_order_and_with_their_times() -> None:
    found, told = fast_path()
    for number in range(2 * RUN + 3):
        assert found.take(chunk(delta(str(number))), number)
    assert [len(texts) for texts, _ in told.runs] == [RUN, RUN]
    assert found.tell() == delta(str(2 * RUN + 2))
    assert found.tell() is None
    assert [text for texts, _ in told.runs for text in texts] == [b"%d" % number for number in range(2 * RUN + 3)]
    assert [at_ns for _, times_ns in told.runs for at_ns in times_ns] == list(range(2 * RUN + 3))


def test_chunks_that_come_together_have_the_time_of_their_read() -> None:
    found, told = fast_path()
    assert found.take(chunk(delta("a")), 1)
    assert found.take(chunk(delta("b")) + chunk(delta("c")), 2)
    assert found.tell() == delta("c")
    assert told.runs == [([b"a", b"b", b"c"], [1, 2, 2])]


def test_without_a_template_nothing_is_alike() -> None:
    found, _ = fast_path()
    found.expect(None)
    assert not found.take(chunk(delta("a")), 1)


def test_a_body_that_the_close_ends_has_no_size_lines() -> None:
    found, told = fast_path(chunked=False)
    assert found.take(delta("a"), 1)
    assert not found.take(chunk(delta("a")), 2)
    found.tell()
    assert told.runs == [([b"a"], [1])]


# A whole answer through a relay: whatever the reads, the client gets the server's bytes and the record is the same.


@dataclass
class Peer:
    """Both sides of a relay at once, as far as it asks anything of them."""

    draining: bool = False
    leftovers: Leftovers | None = None
    got: bytes = b""
    reused: bool = False

    @property
    def out(self) -> "Peer":
        return self

    def write(self, data: bytes) -> None:
        self.got += data

    def finished(self, *, keep: bool) -> None: ...
    def cut(self) -> None: ...
    def hold_upload(self, *, hold: bool) -> None: ...
    def enter_tunnel(self) -> None: ...


class Kept(Pool):
    """A pool of one connection that needs no server: without a socket what is written goes nowhere."""

    def __init__(self) -> None:
        super().__init__(Target("http", "h", 1))
        self.connection = Connection()

    def take(self) -> Connection:
        return self.connection


CHAT_BODY = b'{"model":"m","stream":true,"messages":[]}'
ANSWER_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
RECORDED = [
    stream
    for stream in STREAMS.values()
    if stream.ask.dialect is CHAT
    and stream.status == 200
    and "event-stream" in stream.content_type
    and not stream.content_encoding
]


def through_a_relay(reads: list[bytes]) -> tuple[bytes, tuple[object, ...], int]:
    """What the client got, the facts of the record that no clock moves, and how many reads were looked at in runs."""

    async def run() -> tuple[bytes, tuple[object, ...], int]:
        async with proxied(None) as rig:
            head = RequestHead(b"POST", b"/v1/chat/completions", 1, ((b"host", b"h"),), True, length=len(CHAT_BODY))
            client = Peer()
            watch = rig.eye.admit(head, trusted=True)
            assert watch is not None
            in_runs = 0

            def texts(texts: list[bytes], at_ns: list[int]) -> int:
                nonlocal in_runs
                in_runs += len(texts)
                return feed_texts(exchange, texts, at_ns)

            pool = Kept()
            relay = Relay(client, head, pool=pool, eye=rig.eye, watch=watch)
            relay.start(host=None)
            relay.request_body(CHAT_BODY)
            relay.request_end((), 1)
            relay.flush()
            rig.eye.backlog.settle()
            exchange, feed_texts = watch._exchange, Exchange.feed_texts
            assert exchange is not None
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Exchange, "feed_texts", lambda _, told, at_ns: texts(told, at_ns))
                for read in (ANSWER_HEAD, *reads, b"0\r\n\r\n"):
                    pool.connection.data_received(read)
                (ended,) = rig.ended
            record = ended.record
            facts = (record.outcome, record.token_events, record.output_tokens, record.input_tokens)
            more = (record.finish_reasons, record.unparsed_events, record.response_model, record.token_count_source)
            return client.got, (*facts, *more), in_runs

    return uvloop.run(run())


def test_most_reads_of_a_stream_are_looked_at_in_runs() -> None:
    reads = [chunk(delta(f"t{number}")) for number in range(500)]
    got, facts, in_runs = through_a_relay([*reads, chunk(STOP)])
    assert got == ANSWER_HEAD + b"".join(reads) + chunk(STOP) + b"0\r\n\r\n"
    assert facts[:2] == ("ok", 500)
    assert in_runs > 490


def test_what_looks_like_an_alike_chunk_is_none_within_another() -> None:
    within = chunk(delta("x" * 200))
    reads = [*(chunk(delta("t")) for _ in range(3)), b"%x\r\n" % len(within), within, b"\r\n", chunk(STOP)]
    got, (outcome, *_), _ = through_a_relay(reads)
    assert got == ANSWER_HEAD + b"".join(reads) + b"0\r\n\r\n"
    assert outcome == "ok"


@settings(max_examples=25, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("stream", RECORDED, ids=str)
def test_any_reads_of_a_recorded_stream_give_the_same_bytes_and_facts(stream: Stream, data: st.DataObject) -> None:
    events = [part + b"\n\n" for part in b"".join(read for _, read in stream.reads).split(b"\n\n") if part]
    whole = b"".join(chunk(event) for event in events)
    one_each, facts, _ = through_a_relay([chunk(event) for event in events])
    places = data.draw(st.lists(st.integers(0, len(whole)), max_size=12).map(sorted))
    in_pieces = [
        whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True) if end > start
    ]
    got, cut_facts, _ = through_a_relay(in_pieces)
    assert got == one_each
    assert cut_facts == facts
