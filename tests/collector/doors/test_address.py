"""Texts to addresses, and back."""

import pytest

from collector.doors.address import Address, address
from collector.errors import UsageError

ADDRESSES = {
    "127.0.0.1:4318": Address("127.0.0.1", 4318),
    "[::1]:4318": Address("::1", 4318),
    "localhost:0": Address("localhost", 0),
    "example.org:65535": Address("example.org", 65535),
}


@pytest.mark.parametrize("text", ADDRESSES)
def test_an_address_is_read_and_written_alike(text: str) -> None:
    assert address("--listen", text) == ADDRESSES[text]
    assert str(ADDRESSES[text]) == text


@pytest.mark.parametrize("text", ["", "4318", ":4318", "a:", "a:-1", "a:65536", "a:" + "9" * 5000, "a:٣"])
def test_what_is_none_is_told_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--listen .*: write HOST:PORT, as 127.0.0.1:4318, or off$"):
        address("--listen", text, or_off=", or off")


LOOPBACK = {"127.0.0.1": True, "127.9.9.9": True, "::1": True, "localhost": True, "0.0.0.0": False, "a.org": False}


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_is_what_this_machine_alone_reaches(host: str) -> None:
    assert Address(host, 1).is_loopback is LOOPBACK[host]
