"""What files make of TLS, and what is said of those that make nothing."""

import ssl
from pathlib import Path

import pytest

from sidecar.settings import UsageError
from sidecar.transport.tls import Presented, Trust, believing, presenting, reason
from tests.sidecar.certificates import AUTHORITY, certificate, key, presented


def test_clients_are_offered_nothing_older_than_1_2() -> None:
    for context in (presenting(presented()), believing(Trust(ca=AUTHORITY)), believing(Trust())):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
        assert context.maximum_version is ssl.TLSVersion.MAXIMUM_SUPPORTED


def test_clients_are_asked_for_a_certificate_only_where_wanted() -> None:
    assert presenting(presented()).verify_mode is ssl.CERT_NONE
    wanting = presenting(presented(client_ca=AUTHORITY))
    assert wanting.verify_mode is ssl.CERT_REQUIRED
    assert [subject["subject"] for subject in wanting.get_ca_certs()] == [((("commonName", "authority"),),)]


def test_a_server_is_checked_unless_told_otherwise() -> None:
    for trust in (Trust(), Trust(ca=AUTHORITY), Trust(server_name="x")):
        context = believing(trust)
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    context = believing(Trust(insecure=True))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_a_file_of_authorities_takes_the_place_of_the_systems() -> None:
    assert len(believing(Trust(ca=AUTHORITY)).get_ca_certs()) == 1


BAD = {
    "a certificate that is not there": (
        Presented("nowhere.pem", key("server")),
        r"^--tls-cert nowhere\.pem cannot be read: No such file or directory: name a PEM file$",
    ),
    "a key that is not there": (Presented(certificate("server"), "nowhere.key"), r"^--tls-key nowhere\.key cannot be"),
    "a key of another certificate": (
        Presented(certificate("server"), key("renewed")),
        r"^--tls-cert \S+server\.pem and --tls-key \S+renewed\.key do not belong together: give the certificate's own",
    ),
    "a key with a password": (
        Presented(certificate("server"), key("locked")),
        r"^--tls-key \S+locked\.key asks for a password: give a key without one",
    ),
    "files changed about": (Presented(key("server"), certificate("server")), r"cannot be used \(.*\): give PEM files"),
    "no authority of clients": (
        presented(client_ca="nowhere.pem"),
        r"^--tls-client-ca nowhere\.pem cannot be read: .*: name a PEM file$",
    ),
    "an authority that is none": (presented(client_ca=key("server")), r"^--tls-client-ca \S+ cannot be used \(.*PEM$"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_for_clients_are_one_line(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    files, words = BAD[case]
    with pytest.raises(UsageError, match=words):
        presenting(files)
    assert capfd.readouterr() == ("", "")  # nobody is asked for a password


def test_bad_authorities_of_the_server_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--upstream-ca nowhere\.pem cannot be read: .*: name a PEM file$"):
        believing(Trust(ca="nowhere.pem"))
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match=r"^--upstream-ca \S+empty cannot be used \(.*\): give certificates as PEM$"):
        believing(Trust(ca=str(tmp_path / "empty")))


def test_a_certificate_of_our_own_that_cannot_be_used_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    for shown, words in (
        (("nowhere.pem", key("client")), r"^--upstream-cert nowhere\.pem cannot be read: "),
        ((certificate("client"), key("server")), r"^--upstream-cert \S+ and --upstream-key \S+ do not belong together"),
        ((certificate("client"), key("locked")), r"^--upstream-key \S+locked\.key asks for a password: "),
    ):
        with pytest.raises(UsageError, match=words):
            believing(Trust(certificate=shown[0], key=shown[1]))
    assert capfd.readouterr() == ("", "")


def test_a_reason_is_in_words() -> None:
    error = ssl.SSLError(1, "[SSL: HTTP_REQUEST] http request (_ssl.c:1006)")
    error.reason = "HTTP_REQUEST"
    assert reason(error) == "http request"
    assert reason(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")) == "ssleoferror"
