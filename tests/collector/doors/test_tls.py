"""What files make of TLS, what is said of those that make nothing, and how renewed ones take their place."""

import asyncio
import ssl
from pathlib import Path

import pytest
import uvloop

from collector.doors import tls
from collector.doors.tls import Files, Identity
from collector.errors import TlsError
from tests.sidecar.certificates import AUTHORITY, STRANGER, certificate, client_context, key


def files(name: str = "server", *, client_ca: str | None = None) -> Files:
    return Files(Path(certificate(name)), Path(key(name)), None if client_ca is None else Path(client_ca))


def test_nothing_older_than_1_2_is_spoken() -> None:
    context = Identity(files()).latest
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.maximum_version is ssl.TLSVersion.MAXIMUM_SUPPORTED


def test_a_certificate_is_asked_for_only_where_wanted() -> None:
    assert Identity(files()).latest.verify_mode is ssl.CERT_NONE
    wanting = Identity(files(client_ca=AUTHORITY))
    assert wanting.latest.verify_mode is ssl.CERT_REQUIRED
    assert wanting.pem.client_ca == Path(AUTHORITY).read_bytes()


NOWHERE = Path("nowhere.pem")
BAD = {
    "no certificate": (Files(NOWHERE, Path(key("server"))), r"^--tls-cert nowhere\.pem cannot be read: No such file"),
    "no key": (Files(Path(certificate("server")), NOWHERE), r"^--tls-key nowhere\.pem cannot be read: No such file"),
    "a key of another certificate": (
        Files(Path(certificate("server")), Path(key("renewed"))),
        r"^--tls-cert \S+server\.pem and --tls-key \S+renewed\.key do not belong together: give the certificate's own",
    ),
    "a key with a password": (
        Files(Path(certificate("server")), Path(key("locked"))),
        r"^--tls-key \S+locked\.key asks for a password: give a key without one",
    ),
    "files changed about": (
        Files(Path(key("server")), Path(certificate("server"))),
        r"cannot be used \([a-z ]+\): give PEM files",
    ),
    "no authority": (files(client_ca="nowhere.pem"), r"^--tls-client-ca nowhere\.pem cannot be read: No such file"),
    "an authority that is none": (files(client_ca=key("server")), r"^--tls-client-ca \S+ cannot be used \(.*PEM$"),
}


@pytest.mark.parametrize("case", BAD)
def test_files_that_cannot_be_used_are_told_in_one_line(case: str) -> None:
    bad, says = BAD[case]
    with pytest.raises(TlsError, match=says) as caught:
        Identity(bad)
    assert "\n" not in str(caught.value)


class Shown:
    """A listener over TLS of our own, and the files that its identity is read from."""

    def __init__(self, folder: Path, *, client_ca: str | None = None) -> None:
        self.files = Files(folder / "c.pem", folder / "c.key", None if client_ca is None else folder / "ca.pem")
        self.put("server", client_ca=client_ca)
        self.identity = Identity(self.files)

    def put(self, name: str, *, certificate_of: str | None = None, client_ca: str | None = None) -> None:
        self.files.certificate.write_bytes(Path(certificate(certificate_of or name)).read_bytes())
        self.files.key.write_bytes(Path(key(name)).read_bytes())
        if self.files.client_ca is not None and client_ca is not None:
            self.files.client_ca.write_bytes(Path(client_ca).read_bytes())

    async def __aenter__(self) -> "Shown":
        def greet(_reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
            writing.write(b"hello")
            writing.close()

        self._server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=self.identity.context())
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def name(self, shown: str | None = None) -> str:
        """The name that a new connection is shown once it was greeted."""
        reading, writing = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=client_context(shown), server_hostname="localhost"
        )
        try:
            if await reading.read() != b"hello":
                raise ConnectionError("let in by the client, and not by the server")
            subject = writing.get_extra_info("peercert")["subject"]
        finally:
            writing.transport.abort()
        return str(dict(pair for part in subject for pair in part)["commonName"])


def test_connections_to_come_are_shown_the_renewed_certificate(tmp_path: Path) -> None:
    async def story() -> list[str]:
        async with Shown(tmp_path) as shown:
            names = [await shown.name()]
            shown.put("renewed")
            names.append(await shown.name())
            shown.identity.reload()
            return [*names, await shown.name()]

    assert asyncio.run(story()) == ["server", "server", "renewed"]


def test_bad_files_change_nothing(tmp_path: Path) -> None:
    async def story() -> str:
        async with Shown(tmp_path) as shown:
            before = shown.identity.pem
            shown.put("renewed", certificate_of="engine")
            with pytest.raises(TlsError, match="do not belong together"):
                shown.identity.reload()
            assert shown.identity.pem is before
            return await shown.name()

    assert asyncio.run(story()) == "server"


def test_an_authority_that_is_taken_back_is_believed_no_more(tmp_path: Path) -> None:
    async def story() -> str:
        async with Shown(tmp_path, client_ca=AUTHORITY) as shown:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await shown.name()
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await shown.name("intruder")
            first = await shown.name("client")
            shown.put("server", client_ca=STRANGER)
            shown.identity.reload()
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await shown.name("client")
            return first

    assert asyncio.run(story()) == "server"


def test_only_so_many_handshakes_are_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "MAX_HANDSHAKES", 2)

    async def story() -> list[str]:
        async with Shown(tmp_path) as shown:
            assert await shown.name() == "server"  # one that ended counts no more
            idle = [await asyncio.open_connection("127.0.0.1", shown.port) for _ in range(2)]
            await asyncio.sleep(0.1)
            reading, over = await asyncio.open_connection("127.0.0.1", shown.port)
            async with asyncio.timeout(30):
                try:
                    said = await reading.read()
                except ConnectionError:
                    said = b""
            names = [said.decode()]
            for _, writing in idle:
                writing.transport.abort()
            over.transport.abort()
            await asyncio.sleep(0.1)
            return [*names, await shown.name()]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(story()) == ["", "server"]
