"""What one record means."""

import pytest

from capacity.record import Load, Record, outcome_of
from capacity.reply import Reply
from tests.capacity.sse_server import DONE, END, HEAD, event, refusal

FULL = Record("m", 1.0, 3.0, "ok", 1.5, 1.6, 2.0, 2.8, 9, 5, 200)


def test_latency_counts_from_when_the_request_was_due() -> None:
    assert FULL.ttft_s == pytest.approx(1.0)
    assert FULL.e2e_s == pytest.approx(2.0)
    assert FULL.late_s == pytest.approx(0.5)


def test_the_next_hop_saw_only_what_came_after_the_request_was_written() -> None:
    assert FULL.hop_ttft_s == pytest.approx(0.4)


def test_tpot_spreads_the_stream_over_the_tokens_after_the_first() -> None:
    assert FULL.tpot_s == pytest.approx(0.2)


def test_what_never_came_is_absent_not_zero() -> None:
    bare = Record("m", 1.0, 3.0, "timeout")
    assert (bare.ttft_s, bare.hop_ttft_s, bare.tpot_s, bare.late_s) == (None, None, None, None)
    assert Record("m", 1.0, 3.0, "ok", 1.5, 1.6, 2.0, 2.0, 9, 1, 200).tpot_s is None


REPLIES = {
    "ok": HEAD + event(content="a") + DONE + END,
    "no_output": HEAD + event(role="assistant") + DONE + END,
    "error": refusal(500, b"{}"),
    "rejected": refusal(503, b"{}"),
    "quota": refusal(429, b"{}"),
    "client_error": refusal(404, b"{}"),
}


@pytest.mark.parametrize(("outcome", "reply_bytes"), REPLIES.items(), ids=REPLIES.keys())
def test_each_reply_has_one_outcome(outcome: str, reply_bytes: bytes) -> None:
    reply = Reply()
    reply.feed(reply_bytes, 1.0)
    assert outcome_of(reply) == outcome


def test_a_stream_cut_short_is_an_error_though_it_began_well() -> None:
    reply = Reply()
    reply.feed(HEAD + event(content="a"), 1.0)
    reply.end()
    assert outcome_of(reply) == "error"


def test_the_json_of_a_load_holds_every_record() -> None:
    shown = Load("http://x:1", 1700000000.25, 3.0, 1, (FULL,)).as_json()
    assert shown["started_at_s"] == 1700000000.25
    assert shown["records"] == [
        {
            "model": "m",
            "intended_s": 1.0,
            "end_s": 3.0,
            "outcome": "ok",
            "sent_s": 1.5,
            "written_s": 1.6,
            "first_token_s": 2.0,
            "last_token_s": 2.8,
            "input_tokens": 9,
            "output_tokens": 5,
            "status": 200,
            "error": "",
        }
    ]
