from sidecar.counting.exemplar import Trace, callers_trace, own_trace
from sidecar.http.trace_context import SAMPLED, SpanContext

TRACE, OWN, CALLERS = bytes(range(16)), b"ownspan.", b"caller.."


def test_a_span_that_is_exported_is_the_example() -> None:
    assert own_trace(SpanContext(TRACE, OWN, CALLERS), 7) == Trace(TRACE, OWN, 7)


def test_the_callers_span_is_one_where_it_is_kept() -> None:
    assert callers_trace(SpanContext(TRACE, OWN, CALLERS, SAMPLED), 7) == Trace(TRACE, CALLERS, 7)
    assert callers_trace(SpanContext(TRACE, OWN, CALLERS, 0), 7) is None


def test_without_a_caller_there_is_nothing_to_look_up() -> None:
    assert callers_trace(SpanContext(TRACE, OWN, None), 7) is None
