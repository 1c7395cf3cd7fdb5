"""The command: what it refuses, and that it may be killed at any moment beside a collector under load."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.clickhouse import mirror_cli
from collector.clickhouse.engine import Engine
from collector.clickhouse.mirror import Sent
from collector.errors import UsageError
from slo.objective import parse
from tests.collector import support
from tests.collector.clickhouse.test_mirror import Broken, counted, held, mirror, stored
from tests.collector.torture import books
from tests.collector.torture.load import load

CLICKHOUSE = "clickhouse://me@127.0.0.1:8123/db"
GIVEN = ("--clickhouse", CLICKHOUSE, "--origin", "here")

REFUSED = {
    "no origin": (("--clickhouse", CLICKHOUSE), "--origin NAME: name this database"),
    "an origin without end": (("--clickhouse", CLICKHOUSE, "--origin", "o" * 64), "in up to 63 letters"),
    "no ClickHouse": (("--origin", "here"), "--clickhouse URL is missing"),
    "another database": (
        ("--origin", "o", "--clickhouse", "mysql://h/d"),
        "write clickhouse://user@host:8123/database",
    ),
    "a password that everybody can read": (
        ("--origin", "o", "--clickhouse", "clickhouse://me:pw@h/d"),
        "--clickhouse holds a password",
    ),
    "a file that is not there": (("--origin", "o", "--clickhouse-file", "/nowhere/url"), "cannot be read"),
    "no time": ((*GIVEN, "--every", "soon"), "--every: "),
    "no database": ((*GIVEN, "--database", "oracle://h/d"), "oracle is no database"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_is_refused(why: str) -> None:
    flags, words = REFUSED[why]
    with pytest.raises(UsageError) as told:
        mirror_cli.settings(flags, {})
    assert words in str(told.value)


def test_the_environment_stands_in_for_flags(tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text(support.SPEC)
    environ = {
        "FIRSTTOKEN_CLICKHOUSE": "clickhouse://me:pw@h/d",
        "FIRSTTOKEN_ORIGIN": "eu",
        "FIRSTTOKEN_EVERY": "1m",
        "FIRSTTOKEN_SLO": str(tmp_path / "slo.yaml"),
        "FIRSTTOKEN_DATABASE": "some.db",
    }
    found = mirror_cli.settings([], environ)
    assert (found.clickhouse, found.origin, found.every_s) == ("clickhouse://me:pw@h/d", "eu", 60)
    assert found.specs == parse(support.SPEC)
    assert found.database.database == "some.db"


def test_the_url_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("clickhouse://me:pw@h/d\n")
    found = mirror_cli.settings(["--origin", "o", "--clickhouse-file", str(tmp_path / "url")], {})
    assert found.clickhouse == "clickhouse://me:pw@h/d"


def test_a_clickhouse_that_is_away_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert mirror_cli.main(["--origin", "o", "--clickhouse", "clickhouse://127.0.0.1:1/db", "--once"]) == 2
    assert capsys.readouterr().err.startswith(
        "firsttoken collector mirror: ClickHouse clickhouse://127.0.0.1:1/db cannot"
    )


@pytest.mark.clickhouse
def test_a_clickhouse_that_is_away_is_told_of_once_and_waited_for(
    tmp_path: Path, clickhouse: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    database = f"sqlite:///{tmp_path}/firsttoken.db"
    counted(database, moments=3)
    broken = Broken(clickhouse, lambda count, _: "before" if 1 < count < 5 else "")

    async def story() -> None:
        stop = asyncio.Event()
        going = asyncio.create_task(mirror_cli.go_on(mirror(database, broken), stop, every_s=0.01))
        await asyncio.to_thread(support.until, lambda: held(clickhouse) == stored(database))
        stop.set()
        await going

    asyncio.run(story())
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(": tried again")[0] for line in told] == [
        "firsttoken collector mirror: the connection broke",
        "firsttoken collector mirror: all is well again",
    ]


class Looks:
    """Stands for a mirror: notes from when on it was asked to look, and has the command end after some looks."""

    def __init__(self, stop: asyncio.Event, most: int) -> None:
        self._stop, self._most = stop, most
        self.since_s: list[int] = []

    async def send(self, *, since_s: int, stopped: Callable[[], bool]) -> Sent:
        assert not stopped()
        self.since_s.append(since_s)
        if len(self.since_s) == self._most:
            self._stop.set()
        return Sent()


def test_a_clock_that_is_set_back_stops_no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((1_800_000_000, 1_799_990_000))
    monkeypatch.setattr("collector.clickhouse.mirror_cli.time.time", lambda: next(times))

    async def story() -> list[int]:
        stop = asyncio.Event()
        looks = Looks(stop, 3)
        await mirror_cli.go_on(looks, stop, every_s=0.01)  # type: ignore[arg-type]
        return looks.since_s

    assert asyncio.run(story()) == [0, 1_800_000_000 - 900, 1_799_990_000 - 900]


MAKE = """
import sys, clickhouse_connect
c = clickhouse_connect.get_client(dsn=sys.argv[1])
for statement in sys.stdin.read().split(";\\n"):
    c.command(statement)
"""
SUMS = """
import sys, json, clickhouse_connect
c = clickhouse_connect.get_client(dsn=sys.argv[1])
questions = (
    "SELECT 'good', sum(good) FROM slo_count", "SELECT 'bad', sum(bad) FROM slo_count",
    "SELECT if(name = 'heartbeat', 'beats', name), sum(value) FROM counter GROUP BY name",
    "SELECT service || ' ' || signal, sum(count) FROM rollup GROUP BY service, signal",
)
print(json.dumps({name: round(value) for one in questions for name, value in c.query(one).result_rows if value}))
"""


def python(code: str, *given: str, text: str = "") -> str:
    """What a process of its own says: a process has one engine of ClickHouse."""
    done = subprocess.run([sys.executable, "-c", code, *given], input=text, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.clickhouse
@pytest.mark.timeout(400)
def test_a_mirror_killed_again_and_again_loses_and_doubles_nothing(tmp_path: Path) -> None:
    database, clickhouse = f"sqlite:///{tmp_path}/firsttoken.db", f"chdb://{tmp_path}/clickhouse"
    schema = [sys.executable, "-m", "firsttoken", "collector", "schema", "--dialect", "clickhouse"]
    printed = subprocess.run(schema, capture_output=True, text=True, check=True).stdout
    python(MAKE, clickhouse, text=printed.rstrip().removesuffix(";"))
    command = [sys.executable, "-m", "firsttoken", "collector", "mirror", "--database", database, "--every", "1s"]
    command += ["--clickhouse", clickhouse, "--origin", "here", "--slo", str(tmp_path / "slo.yaml")]
    dice = random.Random()
    lives = tmp_path / "mirror"
    lives.mkdir()
    with support.collector(tmp_path, "--tick", "1s", "--database", database) as running, load() as sent:
        sent.doors.url = running.url
        sent.goes_on()
        for _ in range(4):
            with support.process(command, lives) as process:
                threading.Timer(2 + 4 * dice.random(), process.kill).start()
                assert process.wait() == -signal.SIGKILL, (lives / support.LOG).read_text()
        total = sent.finish()
        del total["samples"], total["bodies"]
        done = subprocess.run([*command, "--once"], capture_output=True, text=True, env=os.environ, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "sent nothing"
        assert books.counted(database) >= total
        assert json.loads(python(SUMS, clickhouse)) == dict(total)
        assert running.stop() == 0
