"""The alerting rule of a trouble: its labels and times from the table, its words and expression from who knows them."""

from alerts.annotations import Links, Said, service_annotations
from alerts.group import Alert
from slo.objective import Spec
from slo.signals import SERVICE_LABEL
from slo.trouble import Trouble


def trouble_alert(spec: Spec, trouble: Trouble, expr: str, said: Said, links: Links) -> Alert:
    """The alert of a service: its labels and times from the table, its words from who knows the expression."""
    routed = {"severity": trouble.severity, "notify": trouble.notify}
    labels = {**routed, SERVICE_LABEL: spec.service, **owner_labels(spec)}
    annotations = service_annotations(spec, trouble.name, said, links)
    return Alert(trouble.name, expr, labels, annotations, for_s=trouble.for_s, keep_firing_for_s=trouble.keep_s)


def owner_labels(spec: Spec) -> dict[str, str]:
    """Who owns a service as a whole: the owner of its objectives, where they have one and the same."""
    return {} if spec.owner is None else {"owner": spec.owner}
