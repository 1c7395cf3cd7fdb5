"""Addresses as they are taken, announced and given back, whatever stood there before."""

import asyncio
import socket
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sidecar.address import HostPort, UnixPath
from sidecar.telling.admin import AdminDoor, Answer
from sidecar.transport.listener import ListenError, announce, clear, listen, listen_on
from tests.sidecar.rig import on_a_loop


def door() -> AdminDoor:
    return AdminDoor({b"/": lambda: Answer(200, b"here")})


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer


@on_a_loop
async def test_a_listener_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    listener = await listen(door(), HostPort("127.0.0.1", 0), flag="--admin")
    announce("admin", listener)
    assert capsys.readouterr().out == f"admin: http://127.0.0.1:{listener.address.port}\n"
    with closing(listener):
        assert (await asked(*await asyncio.open_connection("127.0.0.1", listener.address.port))).endswith(b"here")


@on_a_loop
async def test_an_address_that_is_taken_is_named_with_its_flag() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        address = HostPort("127.0.0.1", held.getsockname()[1])
        with pytest.raises(ListenError, match=rf"cannot listen on {address} \(--admin\): address already in use"):
            await listen(door(), address, flag="--admin")


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "nowhere.invalid"])
@on_a_loop
async def test_a_name_that_leads_nowhere_is_named_with_its_flag(host: str) -> None:
    with pytest.raises(ListenError, match=rf"cannot listen on {host}:0 \(--listen\): .*: choose another address"):
        await listen(door(), HostPort(host, 0), flag="--listen")


@on_a_loop
async def _listens_and_leaves(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listener = await listen(door(), UnixPath(str(path)), flag="--admin")
    announce("admin", listener)
    assert capsys.readouterr().out == f"admin: unix:{path}\n"
    with closing(listener):
        assert (await asked(*await asyncio.open_unix_connection(path))).endswith(b"here")


def dead_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))


FREE: dict[str, Callable[[Path], object]] = {
    "nothing stands there": lambda path: None,
    "a socket of a process that is gone stands there": dead_socket,
}


@pytest.mark.parametrize("case", FREE)
def test_a_unix_socket_is_taken_where(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s"
    FREE[case](path)
    _listens_and_leaves(path, capsys)
    assert not path.exists()


def test_a_unix_socket_where_somebody_listens_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"

    @on_a_loop
    async def run() -> None:
        taken = rf"cannot listen on unix:{path} \(--listen\): address already in use"
        with closing(await listen(door(), UnixPath(str(path)), flag="--admin")):
            with pytest.raises(ListenError, match=taken):
                await listen(door(), UnixPath(str(path)), flag="--listen")
            assert (await asked(*await asyncio.open_unix_connection(path))).endswith(b"here")

    run()


def test_a_file_that_is_no_socket_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "notes")
    for name in ("notes", "link", "."):

        @on_a_loop
        async def run(path: Path = tmp_path / name) -> None:
            with pytest.raises(ListenError, match=r"\(--admin\): a file that is no socket stands there"):
                await listen(door(), UnixPath(str(path)), flag="--admin")

        run()
    assert (tmp_path / "notes").read_text() == "precious"


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    @on_a_loop
    async def run() -> None:
        with pytest.raises(ListenError, match=r"no such file or directory"):
            await listen(door(), UnixPath(str(tmp_path / "no" / "s")), flag="--admin")

    run()


def test_a_socket_that_another_process_has_put_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"

    @on_a_loop
    async def run() -> None:
        ours = await listen(door(), UnixPath(str(path)), flag="--admin")
        path.unlink()
        with closing(await listen(door(), UnixPath(str(path)), flag="--admin")):
            ours.close()
            ours.close()
            assert stat.S_ISSOCK(path.lstat().st_mode)
        assert not path.exists()

    run()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_sockets_that_are_bound_already_belong_to_who_bound_them(family: int, tmp_path: Path) -> None:
    bound = socket.socket(family)
    bound.bind(str(tmp_path / "s") if family == socket.AF_UNIX else ("127.0.0.1", 0))

    @on_a_loop
    async def run() -> None:
        listener = await listen_on(door(), [bound])
        address = listener.address
        connecting = (
            asyncio.open_unix_connection(address.path)
            if isinstance(address, UnixPath)
            else asyncio.open_connection(address.host, address.port)
        )
        with closing(listener):
            assert (await asked(*await connecting)).endswith(b"here")

    run()
    assert family != socket.AF_UNIX or (tmp_path / "s").exists()
    bound.close()


def test_clearing_the_way_needs_nothing_there(tmp_path: Path) -> None:
    clear(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []
