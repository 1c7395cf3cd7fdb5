"""A result as a row, on real databases."""

import json
import math
from typing import Any

import pytest
from sqlalchemy import select

from capacity.errors import DatabaseError
from capacity.stored.database import named_database
from capacity.stored.recorded import Whose
from capacity.stored.results import Found, keep, last_certified, refuse_unfit, without_secrets
from collector import schema
from tests.capacity.stored.test_database import flags
from tests.collector.storage.test_commit import after

CERTIFIED = {
    "verdict": "certified",
    "binding": "ttft",
    "certified_rps": 4.5,
    "refuted_rps": 6,
    "peak_concurrency": {"mean": 12.5, "p95": 20.0},
    "headroom": -0.25,
    "probes": [{"rate_rps": 4.5}],
}
BATCH = {"verdict": "feasible", "chosen_batch": 32, "feasible_min": 4, "feasible_max": 40, "efficient_batch": 24}
TARGET = "http://me:secret@127.0.0.1:8000/a?key=k"


def found(result: dict[str, Any], *, at_s: int = 60, kind: Any = "certify") -> Found:
    return Found(at_s, kind, "", "chat", "m", TARGET, result)


def stored(database: str) -> list[dict[str, Any]]:
    question = select(schema.capacity_result).order_by(schema.capacity_result.c.at_s)
    return [dict(row) for row in after(database, lambda c: c.execute(question).mappings().all())]


def put(database: str, *all_found: Found) -> None:
    url = named_database(*flags("--database", database))
    assert url is not None
    for one in all_found:
        keep(url, one)


def test_a_result_is_kept_with_its_figures_and_whole(database: str) -> None:
    after(database)
    put(database, found(CERTIFIED), found(BATCH, at_s=70, kind="batch"))
    first, second = stored(database)
    assert json.loads(first.pop("result")) == CERTIFIED
    assert {name: value for name, value in first.items() if value is not None} == {
        "at_s": 60,
        "environment": "",
        "service": "chat",
        "model": "m",
        "kind": "certify",
        "target": "http://127.0.0.1:8000/a",
        "verdict": "certified",
        "binding": "ttft",
        "certified_rps": 4.5,
        "refuted_rps": 6.0,
        "peak_concurrency": 12.5,
        "headroom": -0.25,
    }
    assert {name: second[name] for name in BATCH} == BATCH
    assert second["certified_rps"] is None


def test_the_same_result_again_replaces_itself(database: str) -> None:
    after(database)
    put(database, found(BATCH), found({**BATCH, "verdict": "other"}))
    assert [row["verdict"] for row in stored(database)] == ["other"]


def test_what_is_not_known_is_null(database: str) -> None:
    after(database)
    put(database, found({"verdict": "interrupted", "certified_rps": None, "headroom": math.inf}))
    (row,) = stored(database)
    assert [row[name] for name in ("certified_rps", "headroom", "replicas", "binding")] == [None, None, None, ""]


def test_the_last_certificate_of_a_service_is_found_again(database: str) -> None:
    after(database)
    refused = {**CERTIFIED, "verdict": "not_certifiable", "certified_rps": None}
    put(database, found(CERTIFIED), found({**CERTIFIED, "certified_rps": 5.0}, at_s=70), found(refused, at_s=80))
    put(database, found({**BATCH, "certified_rps": 9.0}, at_s=90, kind="batch"))
    url = named_database(*flags("--database", database))
    assert url is not None
    for model in ("m", None):
        assert last_certified(url, Whose("", "chat", model)) == {**CERTIFIED, "certified_rps": 5.0}
    for other in (Whose("", "chat", "other"), Whose("prod", "chat", "m"), Whose("", "code", None)):
        assert last_certified(url, other) is None


def test_an_unfit_database_is_refused_before_a_run(database: str) -> None:
    after(database, lambda c: c.execute(schema.schema_version.update().values(version_num="9999")))
    url = named_database(*flags("--database", database))
    assert url is not None
    with pytest.raises(DatabaseError, match="revision 9999"):
        refuse_unfit(url)


def test_a_url_loses_what_is_nobody_elses_business() -> None:
    assert without_secrets("https://a:b@h:1/v1?k=s#f") == "https://h:1/v1"
    assert without_secrets("") == ""
