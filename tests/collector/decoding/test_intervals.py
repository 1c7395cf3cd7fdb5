"""When a point holds, and what is remembered of its interval."""

import pytest

from collector.decoding import wire
from collector.decoding.intervals import Of, interval
from collector.values.measurement import Interval
from slo import signals
from tests.collector.messages import NS, T0

END = T0 * NS
SAID = wire.Said({}, "m")


def of(*, cumulative: bool, ours: bool = False, instance: str = "i") -> Of:
    resource = wire.resource({signals.SERVICE_NAME: "chat", signals.SERVICE_INSTANCE: instance})
    return Of(wire.Sender(resource, ours, ()), "scope", signals.TTFT, cumulative)


@pytest.mark.parametrize("one", [of(cumulative=False, ours=True), of(cumulative=False, instance="")])
def test_of_plain_deltas_nothing_is_remembered(one: Of) -> None:
    assert one.is_plain
    assert interval(one, END - NS, END, SAID) == Interval(END - NS, END)
    assert interval(one, 2**64 - 1, END, SAID) == Interval(END, END), "a clock that was set"


def test_the_interval_of_a_foreign_delta_has_a_place() -> None:
    one = of(cumulative=False)
    first, again, next_one = (interval(one, END - NS + by, END + by, SAID) for by in (0, 0, NS))
    assert first == again
    assert len({"", first.place, next_one.place}) == 3
    assert interval(one, 0, END, SAID).place == ""


def test_a_cumulative_point_belongs_to_the_stream_of_its_start() -> None:
    one = of(cumulative=True)
    started, later = interval(one, END - NS, END, SAID), interval(one, END - NS, END + NS, SAID)
    assert (started.stream, started.unstarted) == (later.stream, later.unstarted)
    for began_ns in (0, END):
        assert interval(one, began_ns, END, SAID) == Interval(0, END, started.unstarted)
    ahead = interval(one, END + NS, END, SAID)
    assert (ahead.start_ns, ahead.stream) == (0, wire.stream_id(one.sender, "scope", signals.TTFT.name, SAID, END + NS))
