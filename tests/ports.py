"""Ports for servers that cannot be told to take any free one and say which."""

import contextlib
import random
import socket

BELOW_EPHEMERAL = range(12_000, 32_000)
"""The kernel hands out none of these for port 0: a test beside this one does not get it in the meantime."""


def free_ports(count: int) -> list[int]:
    """So many different ports of the loopback that were free just now."""
    with contextlib.ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            port, probe = random.choice(BELOW_EPHEMERAL), held.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # taken, or already found
                probe.bind(("127.0.0.1", port))
                found.append(port)
        return found
