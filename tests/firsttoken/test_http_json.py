"""JSON over a real socket, and every way it can't be had."""

import socket
from pathlib import Path

import pytest

from firsttoken.errors import UnreachableError
from firsttoken.http_json import Access, ask_json, ask_text
from tests.firsttoken.json_server import serve


def test_a_get_answers_json() -> None:
    with serve({"/x?y=1": (200, '{"a": 1}')}) as (url, _):
        assert ask_json(f"{url}/x?y=1") == {"a": 1}


def test_a_body_is_posted_as_json() -> None:
    with serve({"/faults": (200, '{"slow": 4.0}')}) as (url, posted):
        assert ask_json(f"{url}/faults", body={"slow": 4.0}) == {"slow": 4.0}
        assert posted == [("/faults", {"slow": 4.0})]


def test_text_is_text() -> None:
    with serve({"/": (200, "a 1\n")}) as (url, _):
        assert ask_text(url) == "a 1\n"


def test_a_status_that_is_no_success_says_what_was_answered() -> None:
    with serve({"/x": (503, "starting")}) as (url, _), pytest.raises(UnreachableError, match="answers 503: starting"):
        ask_json(f"{url}/x")


def test_of_a_page_for_people_nothing_is_repeated() -> None:
    page = (404, "<!DOCTYPE html>")
    with serve({"/x": page}) as (url, _), pytest.raises(UnreachableError, match="404: a page for people"):
        ask_json(f"{url}/x")


def test_an_answer_that_is_not_json_is_named() -> None:
    with serve({"/x": (200, "<html>")}) as (url, _), pytest.raises(UnreachableError, match="not JSON"):
        ask_json(f"{url}/x")


def test_nobody_listening_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(UnreachableError, match=f"127.0.0.1:{port} does not answer"):
            ask_json(f"http://127.0.0.1:{port}")


def test_one_who_never_answers_is_given_up() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(UnreachableError, match="timed out"):
            ask_json(f"http://127.0.0.1:{mute.getsockname()[1]}", timeout_s=0.1)


@pytest.mark.parametrize("url", ["here", "ftp://h", "http://", "http://h:99999", "http://a b", "https://a\x01b"])
def test_what_is_no_url_is_named(url: str) -> None:
    with pytest.raises(UnreachableError, match="no URL"):
        ask_json(url)


@pytest.mark.parametrize("url", ["http://me:secret@h", "me:secret@h", "http://me:se/secret@h", "http://[me:secret@h"])
def test_a_password_in_a_url_is_neither_sent_nor_shown(url: str) -> None:
    with pytest.raises(UnreachableError, match="is not sent") as refusal:
        ask_json(url)
    assert "secret" not in str(refusal.value)


def test_a_file_that_holds_no_certificates_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    for name in ("ca.pem", "missing.pem"):
        with pytest.raises(UnreachableError, match=rf"{name} holds no certificates"):
            ask_json("https://127.0.0.1:1", access=Access(ca_file=str(tmp_path / name)))
    with pytest.raises(UnreachableError, match=r"ca\.pem holds no certificate with its key"):
        ask_json("https://127.0.0.1:1", access=Access(cert_file=str(tmp_path / "ca.pem")))
