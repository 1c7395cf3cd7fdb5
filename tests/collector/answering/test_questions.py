"""`/api/v1/...` over real sockets: figures that agree with SQL, and faults in one line."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from collector.answering import answers
from tests.collector import exports
from tests.collector.support import Running, ask, collector, send, until

MODELS = {
    "status": answers.Status,
    "percentiles": answers.Percentiles,
    "burn": answers.Burns,
    "budget": answers.Budgets,
    "alerts": answers.Alerts,
}


@contextmanager
def filled(folder: Path) -> Iterator[Running]:
    """A collector that has counted a trouble, judged it and pages for it."""
    with collector(folder, "--tick", "1s") as running:
        now_s = int(time.time())  # once: a body of the same second again would be the same body
        for second in range(50):
            send(running.url, exports.second(good=50, bad=50, at_s=now_s - second))
        until(lambda: ask(f"{running.url}/api/v1/alerts").json["alerts"])
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("questions")
    with filled(folder) as running:
        yield running, folder


def asked(running: Running, question: str) -> Any:
    answer = ask(f"{running.url}/api/v1/{question}")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json"), answer.body
    return answer.json


@pytest.mark.parametrize("name", MODELS)
def test_every_answer_is_as_its_model_describes_it_and_holds_no_nan(shared: tuple[Running, Path], name: str) -> None:
    running, _ = shared
    body = ask(f"{running.url}/api/v1/{name}").body.decode()
    json.loads(body, parse_constant=lambda text: pytest.fail(f"{text} in {name}"))
    found = MODELS[name].model_validate_json(body, strict=True)
    assert found.model_dump(mode="json") == json.loads(body)


def test_figures_are_those_of_sql(shared: tuple[Running, Path]) -> None:
    running, folder = shared
    rows = asked(running, "burn?from=0&model=m&window=5m&limit=5000")["rows"]
    with closing(sqlite3.connect(folder / "firsttoken.db", timeout=10)) as connection:
        question = "SELECT at_s, good, bad, burn FROM burn_rate WHERE model = 'm' AND window_s = 300 ORDER BY at_s"
        stored = connection.execute(question).fetchall()
    of_before = {row["at_s"]: (row["at_s"], row["good"], row["bad"], row["burn"]) for row in rows}
    common = [row for row in stored if row[0] in of_before]
    # The figures of the running minute are replaced at each tick.
    assert len(common) >= len(stored) - 1
    assert all(of_before[row[0]] == row for row in common)


def test_alerts_have_a_present_and_a_past(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    found = asked(running, "alerts?service=chat&objective=ttft")
    assert {(one["name"], one["tier"], one["state"]) for one in found["alerts"]} == {
        ("LLMTTFTBudgetBurn", "fast", "firing")
    }
    assert {one["labels"]["notify"] for one in found["alerts"]} == {"page"}
    assert {one["state"] for one in found["history"]} >= {"firing"}
    assert asked(running, "alerts?service=search") == {"alerts": [], "history": [], "next": None}


def test_the_status_is_narrowed_by_whom_it_speaks_of(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    assert {one["model"] for one in asked(running, "status")["objectives"]} == {"*", "m"}
    (one,) = asked(running, "status?service=chat&objective=ttft&model=m")["objectives"]
    assert one["tiers"] == [{"name": "fast", "long": "1m", "short": "15s", "factor": 5.0, "notify": "page"}]
    assert asked(running, "status?model=another")["objectives"] == []


def test_one_instance_has_figures_of_its_own(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    one = "percentiles?service=chat&model=m&signal=ttft&window=5m&instance="
    (row,) = asked(running, f"{one}i1")["rows"]
    assert (row["count"], row["p50"]) == (5000, pytest.approx(0.1, rel=0.011))
    assert asked(running, f"{one}i2")["rows"] == []


FAULTS = {
    "a misspelt parameter": ("burn?windo=5m", 422, "windo: there is no such parameter"),
    "a window without a unit": ("burn?window=5", 422, "window: 5 is not a duration"),
    "no moment": ("budget?from=yesterday", 422, "from: 'yesterday' is no moment"),
    "too many rows": ("percentiles?limit=999999", 422, "limit: "),
    "the end before the beginning": ("alerts?from=20&to=10", 400, "from: lies after to"),
    "a cursor of another kind": ("burn?next=WzFd", 400, "next: is not what an answer gave"),
    "an instance of nobody": ("percentiles?instance=i1", 400, "instance: needs service"),
    "a status of too much": ("status?limit=0", 422, "limit: "),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_one_line_that_says_what_would_be_right(shared: tuple[Running, Path], case: str) -> None:
    running, _ = shared
    question, status, says = FAULTS[case]
    answer = ask(f"{running.url}/api/v1/{question}")
    assert answer.status == status
    assert list(answer.json) == ["error"]
    assert answer.json["error"].startswith(says)
    assert "\n" not in answer.json["error"]


def test_while_the_database_is_away_reads_say_why_and_the_status_stands(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s") as running:
        (tmp_path / "firsttoken.db").rename(tmp_path / "moved.db")
        answer = ask(f"{running.url}/api/v1/burn")
        assert (answer.status, list(answer.json)) == (503, ["error"])
        assert "the database cannot be read" in answer.json["error"]
        assert int(answer.headers["retry-after"]) > 0
        assert ask(f"{running.url}/api/v1/status").status == 200
        until(lambda: ask(f"{running.url}/readyz").status == 503)
        assert b"the database cannot commit" in ask(f"{running.url}/readyz").body


def test_the_document_names_every_route_its_parameters_and_its_faults(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    described = ask(f"{running.url}/api/openapi.json").json
    for name in MODELS:
        route = described["paths"][f"/api/v1/{name}"]["get"]
        assert {"200", "400", "422", "503"} <= set(route["responses"])
        problem = route["responses"]["422"]["content"]["application/json"]["schema"]["$ref"]
        assert problem.endswith("/Problem")
        assert all(parameter.get("description") for parameter in route["parameters"])
        assert {"service", "model", "environment", "limit"} <= {one["name"] for one in route["parameters"]}


def test_another_target_is_replayed_over_what_is_stored(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    question = "whatif?service=chat&objective=ttft&percentile=50&threshold=500ms"
    body = ask(f"{running.url}/api/v1/{question}").body
    found = answers.WhatIf.model_validate_json(body, strict=True)
    assert found.promised is not None
    assert found.asked is not None
    assert (found.promised.target, found.asked.target) == (0.95, 0.5)
    assert found.asked.basis == "counts"
    assert found.asked.bad_share is not None
    assert found.asked.bad_share.likely == 0.5
    assert found.asked.remaining.likely > found.promised.remaining.likely
    rough = answers.WhatIf.model_validate_json(ask(f"{running.url}/api/v1/{question[:-5]}1s").body, strict=True)
    assert rough.asked is not None
    assert rough.asked.basis == "histogram"
    mine, elsewhere = (asked(running, f"{question}&environment={name}") for name in ("", "elsewhere"))
    assert mine["asked"]["total"] == mine["promised"]["total"] == found.asked.total
    assert (elsewhere["promised"], elsewhere["asked"]) == (None, None)
    answer = ask(f"{running.url}/api/v1/whatif?service=chat&objective=ttft&percentile=200")
    assert (answer.status, answer.json["error"].partition(":")[0]) == (422, "percentile")
