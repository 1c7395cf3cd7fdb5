"""ClickHouse named right and wrong, and inserts that are there once."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from collector.clickhouse import engine
from collector.clickhouse.engine import Engine, checked, has_password, opened, without_password
from collector.clickhouse.tables import SLO_COUNT
from collector.errors import UnavailableError, UnusableDatabaseError, UsageError
from tests.collector.clickhouse.http_engine import served

ROW = ("", "chat", "m", "ttft", "h", "o", 1_800_000_000, 3, 1)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


def test_a_server_that_is_not_there_is_told_in_one_line(closed_port: int) -> None:
    url = f"clickhouse://me:secret@127.0.0.1:{closed_port}/db?password=secret"
    with pytest.raises(UnusableDatabaseError) as told, opened(url):
        pass
    assert str(told.value).startswith(f"ClickHouse clickhouse://me@127.0.0.1:{closed_port}/db cannot be used: ")
    assert "secret" not in str(told.value)
    assert "\n" not in str(told.value)


def test_a_url_of_another_kind() -> None:
    with pytest.raises(UsageError, match="write clickhouse://user@host:8123/database"):
        checked("postgresql://host/name")
    assert checked("https://host/db") == "https://host/db"


@pytest.mark.parametrize(
    "url",
    [
        "clickhouse://me:pw/secret@host:8123/db",
        "clickhouse://me:8123/secret@host:8123/db",
        "clickhouse://me:1?secret@host:8123/db",
        "clickhouse://me:1#secret@host:8123/db",
        "clickhouse://me:secret@[host/db",
        "clickhouse:me:secret@host",
        "clickhouse://me:secret@host:port/db",
        "clickhouse:///secret",
        "secret://me:secret@host/db",
    ],
)
def test_a_url_that_cannot_be_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError, match="%2F for /") as told:
        checked(url)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    "url", ["clickhouse://me:pw@host/db", "https://host/db?password=pw", "https://h/d?access_token=t"]
)
def test_who_sees_a_password_anywhere_in_a_url_can_use_it(url: str) -> None:
    assert has_password(url)


def test_a_fault_is_told_in_the_same_words_each_time(closed_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for _ in range(2):
        with pytest.raises(UnusableDatabaseError) as fault, opened(f"clickhouse://127.0.0.1:{closed_port}/db"):
            pass
        told.append(str(fault.value))
    assert told[0] == told[1]
    assert capsys.readouterr().err == "", "what the client has to say is in the error"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("clickhouse://me:pw@host:8123/db", "clickhouse://me@host:8123/db"),
        ("https://host/db?password=pw", "https://host/db"),
        ("chdb:///folder", "chdb:///folder"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_parameters_are_written_as_the_engine_reads_them() -> None:
    assert engine.parameters(at_s=7, who="it's") == "(at_s = 7, who = 'it\\'s')"


@pytest.mark.clickhouse
def test_an_insert_of_the_same_token_changes_nothing(clickhouse: Engine) -> None:
    clickhouse.insert(SLO_COUNT, [ROW], token="one")
    clickhouse.insert(SLO_COUNT, [(*ROW[:-2], 100, 100)], token="one")
    clickhouse.insert(SLO_COUNT, [ROW], token="two")
    assert list(clickhouse.ask("SELECT sum(good), sum(bad) FROM slo_count")) == [(6, 2)]


@pytest.mark.clickhouse
def test_what_cannot_be_asked_is_told_in_one_line(clickhouse: Engine) -> None:
    with pytest.raises(UnavailableError, match="UNKNOWN_TABLE") as told:
        clickhouse.ask("SELECT * FROM nothing_of_ours")
    assert "\n" not in str(told.value)


@pytest.mark.clickhouse
def test_a_database_without_the_tables_is_told_where_they_come_from(clickhouse_url: str) -> None:
    with pytest.raises(UnusableDatabaseError, match="collector schema --dialect clickhouse"), opened(clickhouse_url):
        pass
    asyncio.run(asyncio.sleep(0))


@pytest.mark.clickhouse
def test_an_insert_without_a_token_is_there_each_time_even_where_people_deleted_it(clickhouse: Engine) -> None:
    for _ in range(2):
        clickhouse.insert(SLO_COUNT, [ROW], token=None)
        assert list(clickhouse.ask("SELECT sum(good) FROM slo_count")) == [(3,)]
        clickhouse.run("ALTER TABLE slo_count DELETE WHERE true SETTINGS mutations_sync = 2")


@pytest.mark.clickhouse
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DROP COLUMN periodic", "no column instance.periodic of type SimpleAggregateFunction"),
        ("MODIFY COLUMN periodic Int64", "no column instance.periodic of type SimpleAggregateFunction"),
    ],
)
def test_tables_of_another_make_are_not_filled(clickhouse_url: str, clickhouse: Engine, change: str, told: str) -> None:
    clickhouse.run(f"ALTER TABLE instance {change} SETTINGS mutations_sync = 2")
    with pytest.raises(UnusableDatabaseError, match=told), opened(clickhouse_url):
        pass


@pytest.mark.clickhouse
def test_an_answer_that_broke_off_is_not_taken_for_one_without_rows(clickhouse_url: str, clickhouse: Engine) -> None:
    nothing = "SELECT good FROM slo_count"
    with served(clickhouse_url, user="me", password="pw") as server:  # noqa: SIM117  the server first
        with opened(f"clickhouse://me:pw@127.0.0.1:{server.port}/default") as one:
            assert list(one.ask(nothing)) == []
            server.is_silent = True
            with pytest.raises(UnavailableError, match="broke off"):
                one.ask(nothing)


@pytest.mark.clickhouse
def test_over_http_an_insert_carries_its_token_and_a_question_its_settings(
    clickhouse: Engine, clickhouse_url: str
) -> None:
    with served(clickhouse_url, user="me", password="pw") as server:
        with opened(f"clickhouse://me:pw@127.0.0.1:{server.port}/default") as over_http:
            for _ in range(2):
                over_http.insert(SLO_COUNT, [ROW], token="one")
            question = "SELECT good FROM slo_count WHERE start_s IN {starts:Array(Int64)} AND origin = {origin:String}"
            assert list(over_http.ask(question, starts=[ROW[6]], origin="o")) == [(3,)]
            assert over_http.now_s() > 0
        settings = [given for query, given in server.asked if "INSERT" in query]
        assert {one["insert_deduplication_token"] for one in settings} == {"one"}
        assert all(one["insert_quorum"] == "auto" and one["async_insert"] == "0" for one in settings)
        assert all(given["select_sequential_consistency"] == "1" for query, given in server.asked if "{starts" in query)
        wrong = f"clickhouse://me:other@127.0.0.1:{server.port}/default"
        with pytest.raises(UnusableDatabaseError, match="AUTHENTICATION_FAILED") as told, opened(wrong):
            pass
        assert "other" not in str(told.value)
