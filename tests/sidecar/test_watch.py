"""One request under the eye, driven by hand: no socket, the bytes as the proxy would tell them."""

import asyncio
import time

import pytest

from sidecar.dialects import LOOK_BYTES, TAIL_BYTES
from sidecar.http_head import RequestHead, ResponseHead
from sidecar.watch import Watch
from slo.signals import OTHER_MODEL
from tests.sidecar.rig import CHAT, Rig, delta, on_a_loop, proxied, raw

S = 1_000_000_000


def watched(rig: Rig, *fields: tuple[bytes, bytes], trusted: bool = True) -> Watch:
    head = RequestHead(b"POST", CHAT.encode(), 1, ((b"Host", b"h"), *fields), keep_alive=True, length=1)
    watch = rig.eye.admit(head, trusted=trusted)
    assert watch is not None
    return watch


OK = ResponseHead(200, b"OK", ((b"Content-Type", b"text/event-stream"),), keep_alive=True, framing="chunked")
BODY = b'{"model":"m","stream":true,"messages":[]}'


@on_a_loop
async def test_a_request_from_its_head_to_its_end() -> None:
    async with proxied(raw(b"")) as rig:
        watch, t0_ns = watched(rig), time.monotonic_ns()
        watch.body(BODY[:10])
        watch.body(BODY[10:])
        watch.held(t0_ns)
        assert list(watch.columns(t0_ns)) == [
            "firsttoken.requests.in_flight",
            "firsttoken.requests.waiting_first_token",
        ]
        watch.answered(OK, t0_ns + S)
        watch.read(delta("a"), t0_ns + 2 * S)
        assert list(watch.columns(t0_ns)) == ["firsttoken.requests.in_flight"]
        watch.read(delta("b"), t0_ns + 3 * S)
        watch.read(b"data: [DONE]\n\n", t0_ns + 4 * S)
        watch.complete(t0_ns + 4 * S, True)
        (ended,) = rig.ended
        record = ended.record
        assert (record.request_model, record.ttft_s, record.tpot_s, record.e2e_s) == ("m", 2.0, 1.0, 4.0)
        assert list(watch.columns(t0_ns)) == []


@pytest.mark.parametrize("size", [LOOK_BYTES - 60, LOOK_BYTES + 10, LOOK_BYTES + TAIL_BYTES + 5, 3 * LOOK_BYTES])
@pytest.mark.parametrize("step", [1000, 1 << 20])
@on_a_loop
async def test_a_long_body_is_known_by_its_beginning_and_its_end(size: int, step: int) -> None:
    body = b'{"messages":[{"role":"user","content":"' + b"x" * size + b'"}],"model":"late","stream":true}'
    async with proxied(raw(b"")) as rig:
        watch = watched(rig)
        for start in range(0, len(body), step):
            watch.body(body[start : start + step])
        watch.held(1)
        assert watch.model == "late"
        assert len(watch._head) == 0
        watch.left(2)


@on_a_loop
async def test_an_answer_before_the_request_is_whole_counts_all_the_same() -> None:
    async with proxied(raw(b"")) as rig:
        watch = watched(rig)
        watch.body(BODY[:10])
        watch.answered(ResponseHead(413, b"", (), keep_alive=False, framing="none"), 5)
        watch.complete(6, True)
        assert rig.outcomes() == {"client_error": 1}


@on_a_loop
async def test_a_client_that_left_before_its_request_was_whole_never_asked() -> None:
    async with proxied(raw(b"")) as rig:
        watch = watched(rig)
        watch.body(BODY[:10])
        watch.left(5)
        assert rig.outcomes() == {}


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE", b"post"])
@on_a_loop
async def test_only_a_post_asks(method: bytes) -> None:
    async with proxied(raw(b"")) as rig:
        head = RequestHead(method, b"/v1/chat/completions", 1, ((b"Host", b"h"),), keep_alive=True)
        assert rig.eye.admit(head, trusted=True) is None


@on_a_loop
async def test_what_asks_for_no_generation_is_not_counted() -> None:
    head = RequestHead(b"POST", b"/api/generate", 1, ((b"Host", b"h"),), keep_alive=True, length=1)
    async with proxied(raw(b"")) as rig:
        watch = rig.eye.admit(head, trusted=True)
        assert watch is not None
        watch.body(b'{"model":"m"}')
        watch.held(1)
        watch.answered(OK, 2)
        watch.read(b"{}\n", 3)
        watch.complete(4, True)
        assert rig.outcomes() == {}
        assert rig.ended == []


@on_a_loop
async def test_times_hang_on_the_monotonic_clock() -> None:
    async with proxied(raw(b"")) as rig:
        watch, t0_ns = watched(rig), time.monotonic_ns()
        watch.body(BODY)
        before_ns = time.time_ns()
        watch.held(t0_ns)
        watch.lost(t0_ns + S, "upstream_closed")
        (ended,) = rig.ended
        assert before_ns <= ended.start_unix_ns <= time.time_ns()
        assert ended.record.ended_at_ns - ended.record.t0_ns == S


@pytest.mark.parametrize(
    ("value", "kept"), [(b"r-1", "r-1"), (b"", None), (b"a" * 129, None), (b"a\x01b", None)], ids=str
)
@on_a_loop
async def test_a_request_id_is_kept_if_it_can_be_shown(value: bytes, kept: str | None) -> None:
    async with proxied(raw(b"")) as rig:
        assert watched(rig, (b"X-Request-ID", value)).request_id == kept


@on_a_loop
async def test_a_model_gets_its_label_with_the_first_good_answer() -> None:
    async with proxied(raw(b"")) as rig:
        watch = watched(rig)
        watch.body(BODY)
        watch.held(1)
        assert watch.label == OTHER_MODEL
        watch.answered(ResponseHead(404, b"", (), keep_alive=False, framing="none"), 2)
        watch.complete(3, True)
        assert rig.eye.labels.known == ()
        watch = watched(rig)
        watch.body(BODY)
        watch.held(1)
        watch.answered(OK, 2)
        assert watch.label == "m"
        watch.left(3)
        await asyncio.sleep(0)
