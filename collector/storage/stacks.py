"""Keeps numpy off the stack that SQLAlchemy lends.

What runs under `run_sync` before PostgreSQL runs in a greenlet, whose stack is cut in pieces and put back as the event
loop comes and goes. numpy looks at its callers when an operand is large and temporary (it would reuse its memory): on
such a stack the look falls through the bottom, and the process dies. No exception says so, and small operands never
show it. (Before SQLite it runs in a thread of its own, see `file_engine`, and nothing is lent.)

So one rule holds for all that is handed to `Store.write`, `Store.read`, `Reader.read` and `run_sync`: statements, and
nothing that reckons with arrays. What must be reckoned between two statements goes through `on_own_stack`.
"""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection

T = TypeVar("T")


def on_own_stack(connection: Connection, work: Callable[[], T]) -> T:
    """The work's answer, found on the stack of whoever awaits the connection; the transaction waits."""
    if not connection.dialect.is_async:
        return work()

    async def answer(_driver: object) -> T:
        return work()

    found: T = connection.connection.run_async(answer)
    return found
