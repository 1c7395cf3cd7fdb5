"""The rules as an object of the Prometheus operator."""

import re

import pytest

from alerts.crd import Place, object_name, place, prometheus_rule
from alerts.errors import TargetError
from alerts.group import group_mapping
from alerts.rules import Target, service_groups
from tests.alerts.support import spec


def test_it_holds_the_groups_of_the_rule_file() -> None:
    groups = service_groups(spec(), Target())
    found = prometheus_rule("chat", groups, (2, 42), Place("monitoring", {"release": "prometheus"}))
    assert (found["apiVersion"], found["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert found["metadata"] == {
        "name": "firsttoken-chat",
        "namespace": "monitoring",
        "labels": {"release": "prometheus"},
    }
    assert found["spec"] == {"groups": [group_mapping(group) for group in groups]}


@pytest.mark.parametrize("service", ["chat", "Chat_V2", "a.b-c", "x_", "_fleet", "A" * 63])
def test_its_name_is_one_to_kubernetes(service: str) -> None:
    name = object_name(service)
    assert len(name) <= 253
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name)


def test_labels_are_read_as_kubernetes_writes_them() -> None:
    assert place(None, ["release=x", "app.kubernetes.io/part-of=llm"]).labels == {
        "release": "x",
        "app.kubernetes.io/part-of": "llm",
    }


@pytest.mark.parametrize("label", ["release", "=x", "release=", "a b=c", "a=-"])
def test_what_is_no_label_is_refused(label: str) -> None:
    with pytest.raises(TargetError, match="is no label of Kubernetes: write it as release=prometheus"):
        place(None, [label])
