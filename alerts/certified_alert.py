"""The ticket for a service that runs above the load it was certified for, before its objectives feel it.

No series says what that load is: `firsttoken capacity certify` finds it, and the rule holds the number. It is the whole
service's, so what was certified must be the endpoint that its users ask.
"""

from decimal import Decimal

from alerts.annotations import Links, Said
from alerts.group import Alert
from alerts.trouble_alert import trouble_alert
from slo import promql
from slo.objective import Spec
from slo.promql import SERVICE_KEY, by, of_service
from slo.quantity import duration_text
from slo.signals import CLASS, LABELS, OUTCOME, REQUESTS, SERVICE_LABEL, SYNTHETIC_CLASS
from slo.trouble import ABOVE_CERTIFIED, CERTIFIED_WINDOW_S, NO_LOAD, TROUBLES


def certified_alert(spec: Spec, certified_rps: Decimal, links: Links) -> Alert:
    """The rate of requests that something was computed for, against that rate."""
    window = duration_text(CERTIFIED_WINDOW_S)
    load = {f"{LABELS[CLASS]}!=": SYNTHETIC_CLASS, f"{LABELS[OUTCOME]}!~": "|".join(NO_LOAD)}
    rate = f"sum {by(SERVICE_KEY)} (rate({REQUESTS.prometheus}{of_service(spec, **load)}[{window}]))"
    return trouble_alert(
        spec,
        TROUBLES[ABOVE_CERTIFIED],
        f"{rate} > {promql.number(certified_rps)}",
        Said(
            f"{spec.service} runs above the load that it is certified for.",
            "{{ $labels." + SERVICE_LABEL + " }}: {{ $value | humanize }} requests a second over the last "
            f"{window}, certified are {certified_rps:.3g}.",
        ),
        links,
    )
