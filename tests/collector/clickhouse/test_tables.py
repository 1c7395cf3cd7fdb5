"""The statements, as text: what a server takes, `test_definitions` shows."""

import re

import pytest

from collector.clickhouse import tables
from collector.clickhouse.tables import COUNTER, KNOWN, ROLLUP, SLO_COUNT, TABLES


def test_a_cluster_gets_replicated_tables_and_one_over_all_shards_of_each() -> None:
    found = list(tables.statements("it's `big`"))
    assert len(found) == 2 * len(TABLES)
    for statement in found:
        assert "ON CLUSTER `it's \\`big\\``" in statement
    local, over_all = found[0], found[1]
    assert "ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')" in local
    assert "Distributed(`it's \\`big\\``, currentDatabase(), `rollup_local`, sipHash64(origin))" in over_all
    assert " replicated_deduplication_window" in local


def test_one_server_needs_no_replicas() -> None:
    found = "\n".join(tables.statements())
    assert "Replicated" not in found
    assert "CLUSTER" not in found
    assert found.count("non_replicated_deduplication_window") == len(TABLES)


@pytest.mark.parametrize("table", [ROLLUP, SLO_COUNT, COUNTER, KNOWN])
def test_an_insert_lies_on_one_shard_by_its_origin(table: tables.EngineTable) -> None:
    assert table.keys[-1].name == "origin"
    assert table.names[: len(table.keys) + 1][-1] == "start_s"


def test_folded_rows_are_those_that_share_the_front_of_the_key() -> None:
    (statement,) = [one for one in tables.statements() if one.startswith("CREATE TABLE IF NOT EXISTS `rollup`")]
    order = re.findall(r"ORDER BY \((.*)\)", statement)[0]
    for front in re.findall(r"GROUP BY (.*?) SET", statement):
        assert order.startswith(front)


def test_texts_and_names_are_read_back() -> None:
    assert tables.literal("it's a \\") == "'it\\'s a \\\\'"
    assert tables.quoted("a`b\\") == "`a\\`b\\\\`"
