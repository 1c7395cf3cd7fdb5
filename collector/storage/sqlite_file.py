"""Keeps the file of SQLite, and the log beside it, from growing for good.

What is deleted leaves free pages, which later rows take; where retention has left many more than that, they are given
back piece by piece (`auto_vacuum=INCREMENTAL`, which a file has from its birth or never). The write-ahead log is
written back every thousand pages and begun anew when no reader needs what is in it: a reader that keeps its
transaction open, as a dashboard's that hangs, makes it grow without end. Nobody can end that reader for its owner; the
log is cut as soon as it has gone, and a warning says so until then.
"""

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import URL

from collector.storage.database import BUSY_TIMEOUT_S, JOURNAL_LIMIT_BYTES, in_place

LOOK_S = 20.0
WARN_BYTES = 64 << 20
PAGES_A_PIECE = 2_000
FREE_SHARE = 0.2

log = logging.getLogger(__name__)


def log_of(url: URL) -> Path:
    """The write-ahead log beside the file."""
    return Path(f"{url.database}-wal")


async def watch(url: URL) -> None:
    """Have the log cut whenever it has grown beyond what commits alone would keep, and free pages given back, until
    cancelled."""
    if url.get_backend_name() != "sqlite":
        return
    warned, look = False, in_place(str(url.database))
    while True:
        try:
            look()
            warned = await asyncio.to_thread(cut_log, url, warned=warned)
            await asyncio.to_thread(give_back, url)
        except OSError as error:
            log.debug("the file was left alone: %s", error)
        await asyncio.sleep(LOOK_S)


def cut_log(url: URL, *, warned: bool = False) -> bool:
    """Cut a log that is too long; whether its readers have kept it so long that a warning was given, now or before."""
    if _bytes(url) <= JOURNAL_LIMIT_BYTES:
        return False
    try:
        with closing(sqlite3.connect(str(url.database), timeout=0)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        log.debug("the log was not cut: %s", error)
    size = _bytes(url)
    if size > WARN_BYTES and not warned:
        log.warning(
            "%s holds %d MiB and grows: a reader has kept its transaction open; it shrinks when that one ends",
            log_of(url),
            size >> 20,
        )
    return size > WARN_BYTES


def give_back(url: URL) -> bool:
    """Give a piece of the free pages back to the disk, if there are many; whether it was done."""
    try:
        with closing(sqlite3.connect(str(url.database), timeout=BUSY_TIMEOUT_S)) as connection:
            pages, free = (
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")
            )
            if free < PAGES_A_PIECE or free < FREE_SHARE * pages:
                return False
            # A script, for a single `execute` would end after the first page.
            connection.executescript(f"PRAGMA incremental_vacuum({PAGES_A_PIECE})")
            return bool(connection.execute("PRAGMA freelist_count").fetchone()[0] < free)
    except sqlite3.Error as error:
        log.debug("no free pages were given back: %s", error)
        return False


def _bytes(url: URL) -> int:
    try:
        return log_of(url).stat().st_size
    except FileNotFoundError:
        return 0
