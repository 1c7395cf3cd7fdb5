"""The rules as a PrometheusRule, which the Prometheus operator of Kubernetes loads by itself.

The same groups as in the rule file, in an object that the operator's selectors choose by namespace and labels.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from alerts.errors import TargetError
from alerts.group import Group, Version, group_mapping

LABEL = re.compile(r"([a-zA-Z0-9]([a-zA-Z0-9._/-]*[a-zA-Z0-9])?)=([a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?)")
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
PREFIX = "firsttoken-"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the object goes (None: where `kubectl` is told to), and the labels that the operator selects it by."""

    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def place(namespace: str | None, labels: Sequence[str]) -> Place:
    """A place of labels written as `release=prometheus`. Raises `TargetError`."""
    read = [LABEL.fullmatch(text) for text in labels]
    for text, match in zip(labels, read, strict=True):
        if match is None:
            raise TargetError(f"--crd-label {text} is no label of Kubernetes: write it as release=prometheus")
    if namespace and not NAMESPACE.fullmatch(namespace):
        raise TargetError(f"--crd-namespace {namespace} is no namespace of Kubernetes: write it as monitoring")
    return Place(namespace, {match[1]: match[3] for match in read if match is not None})


def prometheus_rule(name: str, groups: Sequence[Group], version: Version, at: Place) -> dict[str, object]:
    """The object; `name` is that of the service, made fit for Kubernetes."""
    metadata: dict[str, object] = {"name": object_name(name)}
    if at.namespace:
        metadata["namespace"] = at.namespace
    if at.labels:
        metadata["labels"] = dict(at.labels)
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata,
        "spec": {"groups": [group_mapping(group, version) for group in groups]},
    }


def object_name(name: str) -> str:
    """Lower case, with dashes for underscores, and alphanumeric at both ends."""
    return PREFIX + name.lower().replace("_", "-").strip("-.")
