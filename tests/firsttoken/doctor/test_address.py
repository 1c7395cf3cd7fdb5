"""URLs as they are asked, and as they are shown: never with a secret."""

import re

import pytest

from firsttoken.doctor.address import MAX_TEXT, Address, address, plain_text
from firsttoken.errors import UsageError

GIVEN = {
    "http://h:9090": Address("http://h:9090"),
    "http://h:9090/": Address("http://h:9090"),
    "https://h/prefix/": Address("https://h/prefix"),
    "http://h:9464/metrics": Address("http://h:9464"),
    "http://[::1]:9464": Address("http://[::1]:9464"),
    "http://me:p%40ss@h": Address("http://h", "Basic bWU6cEBzcw=="),
    "http://h:1/?token=secret": Address("http://h:1"),
}


@pytest.mark.parametrize(("text", "found"), GIVEN.items(), ids=GIVEN.keys())
def test_an_address_is_a_root_and_what_to_show_there(text: str, found: Address) -> None:
    assert address("--sidecar", text, leaf="/metrics") == found
    assert found.at("/x") == f"{found.url}/x"


@pytest.mark.parametrize(
    "text", ["h:9090", "ftp://h", "http://", "http://h:port", "http://[::1", "", "http://a b", "http://h/\x1b[31m"]
)
def test_what_is_none_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(UsageError, match=r"--server .*is no URL.*: write http://HOST:PORT"):
        address("--server", text)


def test_a_password_is_refused_where_all_can_read_it() -> None:
    with pytest.raises(UsageError, match="must not stand on a command line") as refusal:
        address("--server", "http://me:secret@h", is_typed=True)
    assert "secret" not in str(refusal.value)
    with pytest.raises(UsageError) as refusal:
        address("--server", "http://me:se@cret@h", is_typed=True)
    assert "cret" not in str(refusal.value)
    assert address("--server", "http://me@h", is_typed=True).authorization  # a name alone is no secret


@pytest.mark.parametrize("text", ["me:secret@h", "http://me:se/cret@h", "http://me:se#cret@h", "http://me:se cret@h"])
def test_a_password_that_spoils_a_url_is_not_shown(text: str) -> None:
    with pytest.raises(UsageError, match="is no URL") as refusal:
        address("--server", text)
    assert not {"se", "cret", "secret"} & set(re.findall(r"\w+", str(refusal.value)))


def test_foreign_text_is_one_short_line_without_secrets() -> None:
    said = plain_text("Get http://me:secret@h/api?token=abc: refused\n\x1b[31mred")
    assert plain_text("http://me:se@cret@h/x") == "http://h/x"
    assert said == "Get http://h/api refused \\x1b[31mred"
    assert len(plain_text("x" * 9999)) == MAX_TEXT
