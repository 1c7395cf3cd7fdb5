"""What words mean as addresses, and who can come to them."""

import pytest

from sidecar.address import Address, HostPort, UnixPath, is_local, is_loopback, of_socket, parse

ADDRESSES: dict[str, Address] = {
    "127.0.0.1:8001": HostPort("127.0.0.1", 8001),
    "localhost:0": HostPort("localhost", 0),
    "[::1]:80": HostPort("::1", 80),
    "unix:/run/first token.sock": UnixPath("/run/first token.sock"),
    f"unix:/{'a' * 106}": UnixPath(f"/{'a' * 106}"),
}
NONE = {
    "host": "write HOST:PORT, as 127.0.0.1:8001, or unix:/PATH",
    ":80": "write HOST:PORT",
    "host:": "write HOST:PORT",
    "host:65536": "write HOST:PORT",
    "host:-1": "write HOST:PORT",
    "host:\u00b2": "write HOST:PORT",
    f"host:{'9' * 5000}": "write HOST:PORT",
    "unix:": "an absolute path",
    "unix:run/s": "an absolute path",
    "unix:/run/": "an absolute path",
    "unix:/a\0b": "an absolute path",
    f"unix:/{'a' * 107}": "at most 107 bytes",
    "unix:/" + "\u00e4" * 54: "at most 107 bytes",
}


@pytest.mark.parametrize("word", ADDRESSES)
def test_a_word_is_an_address_and_is_written_so(word: str) -> None:
    assert parse(word) == ADDRESSES[word]
    assert str(parse(word)) == word


@pytest.mark.parametrize("word", NONE)
def test_what_is_none_is_told_what_would_be_right(word: str) -> None:
    with pytest.raises(ValueError, match=NONE[word]):
        parse(word)


def test_what_a_socket_tells_of_itself() -> None:
    assert of_socket(("127.0.0.1", 5)) == HostPort("127.0.0.1", 5)
    assert of_socket(("::1", 5, 0, 0)) == HostPort("::1", 5)
    assert of_socket("/run/s") == UnixPath("/run/s")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1", "::ffff:127.0.0.1", "::1%lo"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)
    assert is_local(HostPort(host, 1))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "::ffff:10.0.0.1", "localhost.evil", ""])
def test_anything_else_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)
    assert not is_local(HostPort(host, 1))


def test_a_unix_socket_is_of_this_machine() -> None:
    assert is_local(UnixPath("/run/s"))
