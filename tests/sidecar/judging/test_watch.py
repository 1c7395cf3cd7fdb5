"""One request under the eye, driven by hand: no socket, the bytes as the proxy would tell them."""

import asyncio
import time

import pytest

from sidecar.http.http_head import RequestHead, ResponseHead
from sidecar.judging.watch import Watch
from sidecar.said.dialects import LOOK_BYTES, TAIL_BYTES
from slo.signals import OTHER_MODEL, TELEMETRY_FAULTS
from tests.sidecar.rig import CHAT, Rig, delta, on_a_loop, proxied, raw, spec

S = 1_000_000_000
JUDGED = spec("{name: whole, signal: e2e, percentile: 95, threshold: 20s}")
SOON = spec("{name: whole, signal: e2e, percentile: 95, threshold: 400ms}")


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
        assert watch._glimpse is None
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
        before_ns = time.time_ns()
        watch, t0_ns = watched(rig), time.monotonic_ns()
        watch.body(BODY)
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


JSON = ResponseHead(200, b"OK", ((b"Content-Type", b"application/json"),), keep_alive=True, framing="length")
WHOLE = (
    b'{"model":"m-1","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}'
)
ANSWERS = {
    "the usual": (JSON, WHOLE),
    "of another type": (OK, delta("a")),
    "of no type": (ResponseHead(200, b"OK", (), keep_alive=True, framing="length"), WHOLE),
    "an error": (ResponseHead(503, b"", JSON.headers, keep_alive=True, framing="length"), b'{"error":"full"}'),
    "an error within": (JSON, b'{"error":{"type":"overloaded"}}'),
    "empty": (JSON, b""),
    "cut short": (JSON, WHOLE[:-2]),
}


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("together", [True, False])
@on_a_loop
async def test_an_answer_in_one_read_is_what_it_is_in_several(case: str, *, together: bool) -> None:
    head, body = ANSWERS[case]
    async with proxied(raw(b"")) as rig:
        whole, pieces = watched(rig), watched(rig)
        whole.came(BODY, 1 * S)
        if together:
            whole.answered_whole(body, head, 2 * S)
        else:
            whole.answered(head, 2 * S - 5)
            whole.whole(body, 2 * S)
        pieces.body(BODY)
        pieces.held(1 * S)
        pieces.answered(head, 2 * S - 5)
        for byte in body:
            pieces.read(bytes((byte,)), 2 * S)
        pieces.complete(2 * S, True)
        (one, other) = rig.ended
        assert one.record == other.record
        assert rig.eye.in_flight == 0


@on_a_loop
async def test_a_fault_on_the_short_way_leaves_the_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr("sidecar.judging.watch.record_of", broken)
    async with proxied(raw(b"")) as rig:
        watch = watched(rig)
        watch.came(BODY, 1 * S)
        watch.answered_whole(WHOLE, JSON, 2 * S)
        assert rig.outcomes() == {"ok": 1}
        assert [point.value for point in rig.tally.totals() if point.metric is TELEMETRY_FAULTS] == [1]


@on_a_loop
async def test_a_request_that_is_noted_and_over_before_anybody_looks_sets_no_timer() -> None:
    async with proxied(raw(b""), objectives=SOON) as rig:
        for ends in (True, False):
            watch, note = watched(rig), rig.eye.backlog.note
            note(watch.came, BODY, time.monotonic_ns())
            if ends:
                note(watch.left, time.monotonic_ns())
            rig.eye.backlog.settle()
            assert len(rig.eye.timer) == (not ends)


@on_a_loop
async def test_a_reload_leaves_no_request_without_its_timer() -> None:
    async with proxied(raw(b""), objectives=JUDGED) as rig:
        watch = watched(rig)
        watch.came(BODY, time.monotonic_ns())
        rig.eye.load(None)
        assert len(rig.eye.timer) == 1


@on_a_loop
async def test_a_wake_before_the_deadline_looks_at_nothing_and_one_after_it_at_all() -> None:
    async with proxied(raw(b""), objectives=JUDGED) as rig:
        watch, t0_ns = watched(rig), time.monotonic_ns()
        watch.came(BODY, t0_ns)
        seen: list[str] = []
        rig.eye.backlog.note(seen.append, "a token")
        watch.wake(t0_ns + 19 * S)
        assert not seen
        watch.wake(t0_ns + 21 * S)
        assert seen
        watch.left(t0_ns + 22 * S)
