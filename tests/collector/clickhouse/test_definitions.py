"""The engine takes what is printed, twice too, and each view answers."""

import re
from pathlib import Path

import clickhouse_connect
import pytest

from collector.clickhouse import definitions
from collector.clickhouse.engine import Engine, parameters
from tests.collector.clickhouse.conftest import made

pytestmark = pytest.mark.clickhouse


def test_the_engine_takes_the_statements_and_takes_them_again(clickhouse: Engine, clickhouse_url: str) -> None:
    made(clickhouse_url)
    assert clickhouse.lacks() == []


def questions() -> list[str]:
    """What docs/clickhouse.md shows to be asked."""
    page = (Path(__file__).parents[3] / "docs/clickhouse.md").read_text()
    return [
        one for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) for one in block.split(";") if one.strip()
    ]


@pytest.mark.parametrize("question", questions())
def test_the_questions_of_the_docs_are_answered(clickhouse: Engine, question: str) -> None:
    assert list(clickhouse.ask(question)) == []


@pytest.mark.parametrize("view", definitions.VIEWS)
def test_a_view_answers(clickhouse: Engine, view: str) -> None:
    window = {} if view == "budget" else {"window_s": 3600}
    assert list(clickhouse.ask(f"SELECT * FROM {view}{parameters(at_s=1000, tick_s=10, **window)}")) == []


def test_the_engine_reads_the_statements_of_a_cluster(clickhouse_url: str) -> None:
    """No cluster is at hand in a process; what it would be told is parsed."""
    client = clickhouse_connect.get_client(dsn=clickhouse_url)
    for statement in definitions.statements("it's"):
        client.command(f"EXPLAIN AST {statement}")
    client.close()
    assert "DROP" not in definitions.script("it's")
