"""Ports for servers that cannot be told to take any free one and say which."""

import contextlib
import socket


def free_ports(count: int) -> list[int]:
    """So many different ports of the loopback that were free just now."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
