"""An exchange that a server draws out, over a real socket: it ends when its time is over, and tells so."""

import http.client
import socket

import pytest

from firsttoken.deadline import hung_up_after


def opened(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=30)


def test_a_read_ends_when_the_time_is_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        asking = opened(mute.getsockname()[1])
        with hung_up_after(asking, 0.05) as is_over:
            asking.request("GET", "/")
            with pytest.raises(http.client.RemoteDisconnected):
                asking.getresponse()
        assert is_over.is_set()
        asking.close()


def test_what_ends_in_time_is_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asking = opened(server.getsockname()[1])
        with hung_up_after(asking, 30) as is_over:
            asking.request("GET", "/")
            client, _ = server.accept()
            with client:
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                assert asking.getresponse().read() == b"ok"
        assert not is_over.is_set()
        asking.close()


def test_nobody_there_is_told_as_ever() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError), hung_up_after(opened(taken.getsockname()[1]), 30):
            raise AssertionError("connected to nobody")
