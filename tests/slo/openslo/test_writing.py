"""slo.yaml as OpenSLO: read back it is the same spec, and any tool finds queries of counters that exist."""

import yaml

from slo.objective import parse
from slo.openslo.carrying import checked, specs
from slo.openslo.query import selectors
from slo.openslo.reading import read
from slo.openslo.writing import openslo, said, shorthand
from slo.signals import SLO_EVENTS
from slo.source import documents
from tests.slo.openslo.test_authored import EVERYTHING, SPEC

(OTHER,) = parse(
    "service: talk\nobjectives: [{name: A.b_c, signal: e2e, percentile: 90, threshold: 30s, window: 90s}]\n"
)


def test_what_is_written_and_read_again_is_the_same_spec() -> None:
    again = specs(checked(read(documents(openslo([SPEC, OTHER]), "x.yaml"))))
    assert again == (SPEC, OTHER)
    assert [spec.hash for spec in again] == [SPEC.hash, OTHER.hash]


def test_a_target_and_a_window_that_somebody_changed_are_taken_over() -> None:
    text = openslo([SPEC]).replace("target: 0.9995", "target: 0.99").replace("duration: 7d", "duration: 14d")
    (again,) = specs(checked(read(documents(text, "x.yaml"))))
    changed = {one.name: (str(one.goal), one.window) for one in again.objectives}
    assert changed["answered"] == ("0.99", 28 * 86400)
    assert changed["small"] == ("0.995", 14 * 86400)


def test_every_document_is_one_of_openslo() -> None:
    service, *slos = yaml.safe_load_all(openslo([SPEC]))
    assert (service["kind"], service["metadata"]["name"]) == ("Service", "chat")
    assert len(slos) == len(SPEC.objectives)
    for one, objective in zip(slos, SPEC.objectives, strict=True):
        assert (one["apiVersion"], one["kind"], one["spec"]["service"]) == ("openslo/v1", "SLO", "chat")
        assert one["metadata"]["name"] == f"chat-{objective.name}"
        (target,) = one["spec"]["objectives"]
        assert target["target"] == float(objective.goal)
        ratio = one["spec"]["indicator"]["spec"]["ratioMetric"]
        for part in ("good", "total"):
            (selector,) = selectors(ratio[part]["metricSource"]["spec"]["query"])
            asked = {label: value for label, _, value in selector.matchers}
            assert (selector.name, asked["objective"]) == (SLO_EVENTS.prometheus, objective.name)
            assert asked.get("result") == ("good" if part == "good" else None)
            assert asked["environment"] == "prod"


def test_what_others_do_not_see_is_said() -> None:
    lines = list(said([SPEC, OTHER]))
    kept = "patience, its own burn alerts, its budget policy: kept in an annotation, for firsttoken slo import alone"
    assert f"chat/answered: {kept}" in lines
    assert "talk/A.b_c: OpenSLO knows no window of 90 s: kept in the annotation alone" in lines
    assert "talk/A.b_c: is called talk-a-b-c there" in lines
    assert not any(line.startswith("chat/ttft") for line in lines)
    assert EVERYTHING.count("name:") > len(lines)


def test_windows_are_written_in_the_largest_unit_that_fits() -> None:
    assert [shorthand(window_s) for window_s in (28 * 86400, 5400, 3600, 600, 90)] == ["28d", "90m", "1h", "10m", None]
