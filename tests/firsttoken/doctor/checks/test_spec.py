"""Whether everybody judges by the same spec."""

from dataclasses import replace

import pytest

from slo.objective import parse
from tests.firsttoken.doctor.healthy import (
    COLLECTOR_TEXT,
    OTHER_SPEC,
    SLO_YAML,
    SPEC,
    Plant,
    Planted,
    collector,
    events_of,
    healthy,
    of_code,
    page,
    prometheus,
    sidecar,
    sidecar_text,
)

PRODUCTION = parse(SLO_YAML.replace("service: chat", "service: chat\nenvironment: prod"))[0]

PLANTED: Planted = {
    "a sidecar with yesterday's spec": (
        "spec-differs",
        lambda f: sidecar(f, page=page(sidecar_text().replace(SPEC.hash, OTHER_SPEC.hash))),
    ),
    "a file that is not rolled out": ("spec-differs", lambda f: replace(f, specs=(OTHER_SPEC,))),
    "a collector that never heard of the service": (
        "spec-not-in-force",
        lambda f: collector(f, page=page(COLLECTOR_TEXT.replace("chat", "other"))),
    ),
    "counters of another threshold": ("spec-differs", lambda f: prometheus(f, events=events_of(OTHER_SPEC))),
    "sidecars without the environment": ("environment-differs", lambda f: replace(f, specs=(PRODUCTION,))),
    "a spec without an e2e objective": (
        "spec-warning",
        lambda f: replace(
            f, specs=parse("service: x\nobjectives: [{name: a, signal: ttft, percentile: 9, threshold: 1s}]")
        ),
    ),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    assert of_code(plant(healthy()), code)


def test_who_has_which_spec_is_told() -> None:
    (finding,) = of_code(sidecar(healthy(), page=page(sidecar_text().replace(SPEC.hash, "f" * 16))), "spec-differs")
    assert f"{SPEC.hash}: the file of --slo, collector http://collector:4318" in finding.where
    assert "ffffffffffffffff: sidecar http://sidecar:9464" in finding.where


def test_only_what_was_counted_otherwise_is_named() -> None:
    facts = prometheus(healthy(), events=events_of(OTHER_SPEC))
    (finding,) = of_code(facts, "spec-differs")
    assert finding.what.startswith("ttft of service chat")
