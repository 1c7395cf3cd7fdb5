"""A collector's database is used as it is, and anything else is refused in one line."""

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select

from capacity.errors import DatabaseError
from capacity.stored.database import add_database_flags, asked, named_database
from collector import schema
from tests.collector.storage.test_commit import after


def flags(*argv: str, **environ: str) -> tuple[argparse.Namespace, dict[str, str]]:
    parser = argparse.ArgumentParser()
    add_database_flags(parser, environ, "anything")
    return parser.parse_args(argv), environ


def test_work_is_done_in_a_database_of_this_release(database: str) -> None:
    after(database)
    url = named_database(*flags("--database", database))
    assert url is not None
    assert asked(url, lambda c: c.scalar(select(func.count()).select_from(schema.slo_count))) == 0


def test_no_database_is_none() -> None:
    assert named_database(*flags()) is None


def test_tables_of_another_release_are_refused_and_left_alone(database: str) -> None:
    after(database, lambda c: c.execute(schema.schema_version.update().values(version_num="0004")))
    url = named_database(*flags("--database", database))
    assert url is not None
    with pytest.raises(DatabaseError, match=f"holds tables of revision 0004, this release uses {schema.REVISION}: sta"):
        asked(url, lambda c: c.execute(schema.slo_count.delete()))


def test_a_database_that_no_collector_wrote_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    url = named_database(*flags("--database", str(path)))
    assert url is not None
    with pytest.raises(DatabaseError, match=r"other\.db holds no tables of a collector"):
        asked(url, lambda _: None)


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    url = named_database(*flags("--database", f"sqlite:///{path}"))
    assert url is not None
    with pytest.raises(DatabaseError, match=r"none\.db cannot be used: unable to open database file"):
        asked(url, lambda _: None)
    assert not path.exists()


def test_a_server_that_is_away_is_said_without_its_password(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text(f"postgresql://me:secret@/db?host={tmp_path}\n")
    url = named_database(*flags("--database-file", str(secret)))
    assert url is not None
    with pytest.raises(DatabaseError) as caught:
        asked(url, lambda _: None)
    assert "postgresql://me:***@/db cannot be used" in str(caught.value)
    assert "secret" not in str(caught.value)


REFUSED = {
    "a password on the command line": (("--database", "postgresql://a:b@h/d"), "holds a password: put the URL into"),
    "another kind of database": (("--database", "mysql://h/d"), "is none that a collector writes: write a path"),
    "no name": (("--database", "sqlite://"), "is none that a collector writes"),
    "no URL": (("--database", "://"), "is no URL of a database"),
    "a strange parameter": (("--database", "postgresql://h/d?pool=3"), "has a parameter pool: write host, port"),
    "a port beyond all": (("--database", "postgresql://h:99999/d"), "port 99999 is none: it must be from 1 to 65535"),
    "a port that is a word": (("--database", "postgresql://h/d?port=x"), "port x is none"),
    "a file that is not there": (("--database-file", "/no/such"), "--database-file /no/such cannot be read"),
    "both": (("--database", "a.db", "--database-file", "b"), "both name the database"),
}


@pytest.mark.parametrize(("argv", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_names_no_database_of_ours_is_refused(argv: tuple[str, ...], says: str) -> None:
    with pytest.raises(DatabaseError, match=says.replace("(", r"\(")):
        named_database(*flags(*argv))


def test_a_password_may_stand_in_the_environment() -> None:
    url = named_database(*flags(FIRSTTOKEN_DATABASE="postgresql://a:b@h/d?sslmode=require"))
    assert url is not None
    assert (url.password, dict(url.query)) == ("b", {"ssl": "require"})


def test_a_file_holds_one_url_alone(tmp_path: Path) -> None:
    path = tmp_path / "url"
    path.write_text("postgresql://h/d and more")
    with pytest.raises(DatabaseError, match="must hold one URL alone"):
        named_database(*flags("--database-file", str(path)))
