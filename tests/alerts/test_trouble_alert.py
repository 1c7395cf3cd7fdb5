"""What the table of troubles gives an alerting rule."""

from dataclasses import replace

import pytest

from alerts.annotations import Links, Said
from alerts.trouble_alert import owner_labels, trouble_alert
from slo.objective import parse
from slo.trouble import ENGINE_STALLED, KV_PRESSURE, TROUBLES
from tests.alerts.support import spec

SAID = Said("S.", "D.")


def test_labels_and_times_are_those_of_the_table() -> None:
    for name, trouble in TROUBLES.items():
        alert = trouble_alert(spec(), trouble, "up", SAID, Links())
        assert (alert.for_s, alert.keep_firing_for_s) == (trouble.for_s, trouble.keep_s)
        assert (alert.labels["notify"], alert.labels["severity"]) == (trouble.notify, trouble.severity)
        assert alert.annotations["runbook_url"] == f"runbooks/{name}.md"


def test_who_is_told_otherwise_is_told_with_that_severity() -> None:
    alert = trouble_alert(spec(), replace(TROUBLES[KV_PRESSURE], notify="page"), "up", SAID, Links())
    assert (alert.labels["notify"], alert.labels["severity"]) == ("page", "critical")
    assert TROUBLES[ENGINE_STALLED].severity == "critical"


@pytest.mark.parametrize(
    ("owners", "expected"),
    [(["a", "a"], {"owner": "a"}), (["a", "b"], {}), (["a", None], {}), ([None, None], {})],
    ids=["one owns all", "two own some", "one owns some", "nobody owns any"],
)
def test_a_service_has_the_owner_of_all_its_objectives(owners: list[str | None], expected: dict[str, str]) -> None:
    rows = [
        f"{{name: o{i}, signal: e2e, target: 95%, threshold: 1s{f', owner: {owner}' if owner else ''}}}"
        for i, owner in enumerate(owners)
    ]
    (found,) = parse(f"service: s\nobjectives: [{', '.join(rows)}]")
    assert owner_labels(found) == expected
