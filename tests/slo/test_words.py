"""What people read of an objective, for every kind of signal."""

import ssl

import pytest

from slo.objective import parse
from slo.words import breach, counted, limit, promise, reason, visible

(SPEC,) = parse("""
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 90, threshold: 500ms}
  - {name: answered, signal: availability, target: 99.9%}
  - {name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}
  - {name: queue, signal: queue, threshold: 10, target: 99%}
""")


def test_every_promise_reads_as_a_sentence() -> None:
    assert [promise(objective) for objective in SPEC.objectives] == [
        "90% of requests with time to first token within 500ms, over 28d",
        "99.9% of requests answered, over 28d",
        "99% of the time with KV-cache occupancy at or under 90%, over 28d",
        "99% of the time with waiting requests at or under 10, over 28d",
    ]


def test_every_bad_event_is_named() -> None:
    assert [breach(objective) for objective in SPEC.objectives] == [
        "time to first token over 500ms",
        "availability: no answer",
        "KV-cache occupancy over 90%",
        "waiting requests over 10",
    ]


def test_a_limit_stands_in_the_unit_of_its_signal() -> None:
    assert [limit(objective) for objective in SPEC.objectives] == ["500ms", None, "90%", "10"]


def test_a_name_steers_no_terminal() -> None:
    assert visible("org/m-7b [fp8] ü 模型") == "org/m-7b [fp8] ü 模型"
    assert visible("\x1b[31mred\a\n\u202e") == "\\x1b[31mred\\x07\\n\\u202e"


def test_one_is_no_plural() -> None:
    assert [counted(number, "objective") for number in (0, 1, 2)] == ["0 objectives", "1 objective", "2 objectives"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "x"), "No such file or directory"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (TimeoutError("timed out"), "timed out"),
        (
            ssl.SSLError(136, "[X509: NO_CERTIFICATE_OR_CRL_FOUND] no certificate or crl found (_ssl.c:4154)"),
            "no certificate or crl found",
        ),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "it is not UTF-8 text"),
        (ValueError("two\nlines"), "two lines"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_why_something_failed_is_one_line_without_numbers(error: Exception, said: str) -> None:
    assert reason(error) == said
