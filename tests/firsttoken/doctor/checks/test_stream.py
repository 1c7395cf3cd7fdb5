"""How streams that are held back are told from those that come as they are made."""

import pytest

from firsttoken.doctor.facts import Facts, StreamSeen
from tests.firsttoken.doctor.healthy import Plant, Planted, healthy, of_code, server, wrong

STEADY = tuple((0.1 + 0.03 * place, 1) for place in range(20))
LATE = ((0.3, 9), *((0.33 + 0.03 * place, 1) for place in range(11)))


def stream(facts: Facts, via: str = "", **seen: object) -> Facts:
    return server(facts, via=via, stream=StreamSeen(**seen))  # type: ignore[arg-type]


PLANTED: Planted = {
    "a server that refuses the probe": ("probe-failed", lambda f: stream(f, error="answers 404 to a streamed request")),
    "a gateway that compresses": ("stream-compressed", lambda f: stream(f, encoding="gzip")),
    "nginx that buffers": ("stream-buffered", lambda f: stream(f, bursts=((1.9, 21),), via="nginx/1.22")),
    "nginx that buffers by the 4 KiB": (
        "stream-buffered",
        lambda f: stream(f, bursts=((0.46, 19), (0.95, 15)), via="nginx/1.22"),
    ),
    "HAProxy without http-no-delay": ("first-chunk-late", lambda f: stream(f, bursts=LATE)),
    "nginx that was not probed": ("proxy-in-front", lambda f: server(f, via="nginx/1.22.1")),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    assert of_code(plant(healthy()), code)


FINE = {
    "one token after another": STEADY,
    "the role and the first token together": ((0.3, 2), *STEADY[1:]),
    "several tokens a chunk, all along": tuple((0.1 + 0.1 * place, 4) for place in range(6)),
    "an answer too short to tell": ((0.5, 3),),
    "an answer that is made at once": ((0.02, 20),),
    "nothing at all": (),
}


@pytest.mark.parametrize("bursts", FINE.values(), ids=FINE.keys())
def test_what_comes_as_it_is_made_is_fine(bursts: tuple[tuple[float, int], ...]) -> None:
    assert wrong(stream(healthy(), bursts=bursts)) == set()


def test_the_fix_is_that_of_whoever_stands_in_front() -> None:
    (finding,) = of_code(stream(healthy(), via="nginx 1.1 haproxy", bursts=((1.9, 21),)), "stream-buffered")
    assert "proxy_buffering off" in finding.fix
    assert "http-no-delay" in finding.fix
