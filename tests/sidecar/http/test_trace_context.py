import pytest

from sidecar.http.trace_context import child_of, root

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OURS = "00000000000000000000000000abcdef"


def child(*incoming: str) -> str:
    context = child_of([value.encode() for value in incoming], trace_bits=0xABCDEF, span_bits=0x1234)
    return context.traceparent.decode()


def test_a_trace_that_starts_here() -> None:
    assert root(0xABCDEF, 0x1234) == child_of([], trace_bits=0xABCDEF, span_bits=0x1234)
    assert root(0xABCDEF, 0x1234).traceparent.decode() == f"00-{OURS}-0000000000001234-01"


VALID = {
    "sampled": (f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-0000000000001234-01"),
    "not sampled": (f"00-{TRACE}-{PARENT}-00", f"00-{TRACE}-0000000000001234-00"),
    "unknown flags are dropped": (f"00-{TRACE}-{PARENT}-ff", f"00-{TRACE}-0000000000001234-01"),
    "a later version with more": (f"01-{TRACE}-{PARENT}-01-more", f"00-{TRACE}-0000000000001234-01"),
    "blanks around it": (f" 00-{TRACE}-{PARENT}-01 ", f"00-{TRACE}-0000000000001234-01"),
}
INVALID = {
    "none": (),
    "two": (f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01"),
    "version ff": (f"ff-{TRACE}-{PARENT}-01",),
    "version 00 with more": (f"00-{TRACE}-{PARENT}-01-more",),
    "a trace id of zeros": (f"00-{'0' * 32}-{PARENT}-01",),
    "a span id of zeros": (f"00-{TRACE}-{'0' * 16}-01",),
    "capitals": (f"00-{TRACE.upper()}-{PARENT}-01",),
    "too short": (f"00-{TRACE[1:]}-{PARENT}-01",),
    "nonsense": ("x",),
}


@pytest.mark.parametrize("case", VALID)
def test_the_incoming_trace_goes_on(case: str) -> None:
    incoming, expected = VALID[case]
    assert child(incoming) == expected
    context = child_of([incoming.encode()], trace_bits=1, span_bits=1)
    assert context.parent_id == bytes.fromhex(PARENT)


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_one_starts_a_trace(case: str) -> None:
    assert child(*INVALID[case]) == f"00-{OURS}-0000000000001234-01"
    assert child_of([value.encode() for value in INVALID[case]], trace_bits=1, span_bits=1).parent_id is None
