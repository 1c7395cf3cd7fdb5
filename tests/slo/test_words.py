"""What people read of an objective, for every kind of signal."""

from slo.objective import parse
from slo.words import breach, limit, promise, visible

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
