"""What certify and batch found, read from their files."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from slo.capacity_result import CapacityResult, CapacityResultError, read_results
from slo.objective import Spec, parse

SPEC = "service: {}\nobjectives:\n  - {{name: ttft, signal: ttft, percentile: 95, threshold: 500ms}}\n"


def specs(*services: str) -> tuple[Spec, ...]:
    return parse("---\n".join(SPEC.format(service) for service in services or ("chat",)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "result.json"
    path.write_text('{"certified_rps": 12.50, "refuted_rps": null, "verdict": "certified", "chosen_batch": 32}')
    return path


def test_what_a_file_knows_is_taken_and_what_it_does_not_is_left_out(file: Path) -> None:
    (result,) = read_results([str(file)], specs())
    assert result == CapacityResult("chat", Decimal("12.50"), None, Decimal(32), None)


def test_several_services_have_a_file_each(file: Path) -> None:
    results = read_results([f"search={file}", f"chat={file}"], specs("chat", "search"))
    assert [result.service for result in results] == ["search", "chat"]


def test_two_files_of_a_service_are_one_result(tmp_path: Path, file: Path) -> None:
    (tmp_path / "batch.json").write_text('{"chosen_batch": 48, "feasible_max": 64}')
    (result,) = read_results([str(file), str(tmp_path / "batch.json")], specs())
    assert result == CapacityResult("chat", Decimal("12.50"), None, Decimal(48), Decimal(64))


@pytest.mark.parametrize("figure", ["-1", "0", "NaN", "Infinity", "1e999999999", "1e-999999999", '"4"', "true", "[4]"])
def test_what_is_no_figure_is_not_taken_for_one(tmp_path: Path, figure: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(f'\ufeff{{"certified_rps": {figure}, "refuted_rps": 5}}', encoding="utf-8")
    assert read_results([str(path)], specs()) == (CapacityResult("chat", None, Decimal(5), None, None),)


def test_one_found_for_other_promises_is_refused_where_it_would_mislead(tmp_path: Path) -> None:
    def read(threshold: str) -> CapacityResult:
        objective = {"name": "ttft", "signal": "ttft", "percentile": "0.95", "threshold": threshold}
        settings = {"spec": "x", "model": "m", "class": "synthetic", "objectives": [objective]}
        (tmp_path / "c.json").write_text(json.dumps({"certified_rps": 4, "settings": settings}))
        (result,) = read_results([str(tmp_path / "c.json")], specs())
        return result

    assert read("0.5").note == ""
    tighter = f"{tmp_path}/c.json was found for other promises, so more may be possible: ttft was 95% within 300ms"
    assert read("0.3").note.startswith(tighter)
    assert read("0.3").certified_rps == 4
    with pytest.raises(CapacityResultError, match=r"ttft was 95% within 1s and is 95% within 500ms now; run it again"):
        read("1")


FILES = (
    ("sized.json", '{"certified_rps": 4, "replay_replicas": 3, "replicas": 4}'),
    *(("slo.yaml", "service: chat"), ("empty.json", '{"verdict": "x"}')),
    *(("list.json", "[]"), ("none.json", '{"certified_rps": null, "refuted_rps": null}'), ("deep.json", "[" * 100_000)),
)
REFUSED = {
    "whose it is must be said where there are several": ("{file}", "whose is it"),
    "an empty name is nobody's": ("={file}", "no service  in slo.yaml: use chat, search"),
    "no file": ("chat=", "--capacity chat= names no file: write SERVICE=FILE"),
    "brackets without end": ("chat={deep}", "no JSON"),
    "a service that is none": ("nobody={file}", "no service nobody in slo.yaml: use chat, search"),
    "a file that is not there": ("chat={dir}/nowhere.json", "No such file"),
    "a file that is no JSON": ("chat={slo}", "no JSON"),
    "a file that knows nothing of it": ("chat={empty}", "has none of certified_rps"),
    "a run without a certificate": ("chat={none}", "that run found no figure"),
    "a result of another kind": ("chat={sized}", "is a result of capacity size: give that of certify or batch"),
    "a list": ("chat={list}", "has none of certified_rps"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_with_what_would_be_right(tmp_path: Path, file: Path, case: str) -> None:
    argument, said = REFUSED[case]
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    places = {name.split(".")[0]: tmp_path / name for name, _ in FILES}
    with pytest.raises(CapacityResultError, match=said):
        read_results([argument.format(file=file, dir=tmp_path, **places)], specs("chat", "search"))
