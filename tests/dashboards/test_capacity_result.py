"""What certify and batch found, read from their files."""

from decimal import Decimal
from pathlib import Path

import pytest

from dashboards.capacity_result import (
    CapacityResult,
    batch_limits,
    certified,
    load_limits,
    read_results,
)
from dashboards.errors import UsageError
from tests.dashboards.support import many, specs


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "result.json"
    path.write_text('{"certified_rps": 12.50, "refuted_rps": null, "verdict": "certified", "chosen_batch": 32}')
    return path


def test_what_a_file_knows_is_taken_and_what_it_does_not_is_left_out(file: Path) -> None:
    (result,) = read_results([str(file)], specs())
    assert result == CapacityResult("chat", Decimal("12.50"), None, Decimal(32), None)
    assert [(limit.service, limit.text) for limit in load_limits((result,))] == [("chat", "certified 12.5/s")]
    assert [limit.value for limit in batch_limits((result,))] == [32]


def test_several_services_have_a_file_each(file: Path) -> None:
    results = read_results([f"chat-1={file}", f"chat-0={file}"], many(2))
    assert [limit.service for limit in certified(results)] == ["chat-1", "chat-0"]


def test_two_files_of_a_service_are_one_result(tmp_path: Path, file: Path) -> None:
    (tmp_path / "batch.json").write_text('{"chosen_batch": 48, "feasible_max": 64}')
    (result,) = read_results([str(file), str(tmp_path / "batch.json")], specs())
    assert result == CapacityResult("chat", Decimal("12.50"), None, Decimal(48), Decimal(64))


REFUSED = {
    "whose it is must be said where there are several": ("{file}", "whose is it"),
    "a service that is none": ("nobody={file}", "no service nobody in slo.yaml: use chat-0, chat-1"),
    "a file that is not there": ("chat-0={dir}/none.json", "No such file"),
    "a file that is no JSON": ("chat-0={slo}", "no JSON"),
    "a file that knows nothing of it": ("chat-0={empty}", "has none of certified_rps"),
    "a list": ("chat-0={list}", "has none of certified_rps"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_with_what_would_be_right(tmp_path: Path, file: Path, case: str) -> None:
    argument, said = REFUSED[case]
    for name, text in (("slo.yaml", "service: chat"), ("empty.json", '{"verdict": "x"}'), ("list.json", "[]")):
        (tmp_path / name).write_text(text)
    places = {name.split(".")[0]: tmp_path / name for name in ("slo.yaml", "empty.json", "list.json")}
    with pytest.raises(UsageError, match=said):
        read_results([argument.format(file=file, dir=tmp_path, **places)], many(2))
