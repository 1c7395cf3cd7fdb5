"""The probe over real sockets: what it sends, and how streams look that come through and that do not."""

import json

import pytest

from firsttoken.doctor.address import Address
from firsttoken.doctor.checks import stream
from firsttoken.doctor.facts import Facts, ServerFacts, StreamSeen
from firsttoken.doctor.probe import PATH, bursts, probe
from firsttoken.http_json import NOTHING_ASKED, Access
from tests.firsttoken.doctor.front import TOKENS, Front, front

TRIES = 3
"""A machine that is busy with other tests can look once as if it held a stream back; the doctor asks again too."""


def codes(seen: StreamSeen) -> set[str]:
    facts = Facts(0, servers=(ServerFacts("http://s", stream=seen),))
    return {finding.code for check in stream.CHECKS for finding in check.find(facts)}


STREAMS = {
    "as it is made": (Front(), set()),
    "collected whole": (Front(held=TOKENS + 1), {"stream-buffered"}),
    "begun late": (Front(held=10), {"first-chunk-late"}),
    "compressed": (Front(packs=True), {"stream-compressed"}),
}


@pytest.mark.parametrize(("told", "found"), STREAMS.values(), ids=STREAMS.keys())
def test_streams_that_are_held_back_are_known(told: Front, found: set[str]) -> None:
    with front(told) as server:
        tries = (probe(Address(server.url), "m", access=NOTHING_ASKED) for _ in range(TRIES))
        seen = next(one for one in tries if codes(one) == found)
    assert told.packs or seen.events == TOKENS + 1
    assert seen.head_s > 0


def test_it_asks_for_little_as_nobody_and_shows_its_key() -> None:
    with front(Front(pause_s=0.0)) as server:
        probe(Address(server.url), "m", access=Access("key"))
    ((path, headers),) = server.asked
    asked = json.loads(headers["body"])
    assert path == PATH
    assert (asked["model"], asked["stream"], asked["max_tokens"] <= 64) == ("m", True, True)
    assert headers["x-firsttoken-class"] == "synthetic"
    assert headers["Authorization"] == "Bearer key"


def test_a_server_that_gives_no_stream_is_told_why() -> None:
    with front(Front()) as server:
        url = server.url
    assert codes(probe(Address(url), "m", access=NOTHING_ASKED)) == {"probe-failed"}
    assert "connection refused" in probe(Address(url), "m", access=NOTHING_ASKED).error


def test_what_came_together_is_one() -> None:
    reads = [(0.1, 1), (0.101, 2), (0.103, 1), (0.2, 1)]
    assert bursts(reads) == ((0.1, 4), (0.2, 1))
    assert bursts([]) == ()
