"""What names say by themselves: the same whether the shape was kept or made, and no values with it."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.http import head_shape
from sidecar.http.head_shape import HOP_BY_HOP, MAX_SHAPES, MOST_NAMES, Headers, Shape, shape_of

SOME = st.sampled_from((b"Host", b"HOST", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Upgrade", b"X-A"))
FIELDS = st.lists(st.tuples(SOME, st.binary(max_size=3)), max_size=8).map(tuple)


@given(FIELDS)
def test_a_shape_says_what_the_names_are(headers: Headers) -> None:
    names = [name.lower() for name, _ in headers]
    shape = shape_of(headers)
    assert list(shape.names) == names
    assert shape.places == {name: names.index(name) for name in names}
    assert shape.twice == {name for name in names if names.count(name) > 1}
    assert shape.passes is not any(name in HOP_BY_HOP for name in names)
    assert shape_of(headers) == shape


USUAL = {
    "a host and a length": ((b"Host", b"Content-Length"), True),
    "a host alone": ((b"host",), True),
    "no host": ((b"Content-Length",), False),
    "two hosts": ((b"Host", b"host"), False),
    "two lengths": ((b"Host", b"Content-Length", b"content-length"), False),
    "a coding": ((b"Host", b"Transfer-Encoding"), False),
    "a word of this connection": ((b"Host", b"Connection"), False),
    "two of something else": ((b"Host", b"Cookie", b"Cookie"), True),
}


@pytest.mark.parametrize("case", USUAL)
def test_which_requests_are_usual(case: str) -> None:
    names, expected = USUAL[case]
    assert shape_of(tuple((name, b"") for name in names)).is_usual is expected


def test_shapes_are_kept_for_few_heads_and_not_for_long_ones() -> None:
    assert shape_of(((b"A", b"1"),)) is shape_of(((b"A", b"2"),))
    long = tuple((b"N%d" % number, b"") for number in range(MOST_NAMES + 1))
    assert shape_of(long) is not shape_of(long)
    for number in range(3 * MAX_SHAPES):
        shape_of(((b"X-%d" % number, b"secret"),))
    assert head_shape._kept.cache_info().currsize == MAX_SHAPES
    assert not any(b"secret" in shape.names for shape in gc.get_objects() if type(shape) is Shape)
