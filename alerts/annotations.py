"""What an alert says: a static summary, a description with the numbers of the moment, and where to go next.

Descriptions are Prometheus templates: `$value` is what the alert's expression gives, and a budget that the expression
does not hold is asked for with `query`, by the alert's own labels. `%q` quotes a label's value as PromQL does, so a
model name with quotes or backslashes does no harm.
"""

from dataclasses import dataclass
from urllib.parse import quote

from slo import promql
from slo.burn import Tier, factor_text
from slo.objective import Objective, Spec
from slo.promql import VERDICT_KEY
from slo.quantity import duration_text, percent_text
from slo.signals import ALL_MODELS, ENVIRONMENT_LABEL, MODEL_LABEL, SERVICE_LABEL, SIGNALS
from slo.words import breach

ALERT_PLACE = "{alertname}"


@dataclass(frozen=True, slots=True)
class Links:
    """Where runbooks and dashboards are: a pattern with `{alertname}`, and the root of Grafana (may be empty)."""

    runbook: str = "runbooks/{alertname}.md"
    grafana: str = ""

    def runbook_url(self, alertname: str) -> str:
        return self.runbook.replace(ALERT_PLACE, alertname)

    def dashboard_url(self, values: dict[str, str]) -> str:
        """The overview with its variables set and the last six hours; a template (`{{ ... }}`) stays as it is."""
        variables = "&".join(f"var-{key}={value}" for key, value in values.items())
        return f"{self.grafana.rstrip('/')}/d/{promql.OVERVIEW_UID}?{variables}&from=now-6h&to=now"


def burn_annotations(spec: Spec, objective: Objective, tier: Tier, links: Links) -> dict[str, str]:
    """The annotations of a tier's alert."""
    alertname = SIGNALS[objective.signal].alert
    long = duration_text(tier.long_s)
    bad_share = _asked(promql.error_ratio(tier.long_s), objective, "humanizePercentage")
    left = _asked(promql.BUDGET_REMAINING, objective, "humanizePercentage")
    gone_in = _asked(promql.BUDGET_EXHAUSTED_IN, objective, "humanizeDuration")
    return {
        "summary": (
            f"Objective {objective.name} of {spec.service} spends its error budget too fast: the {tier.name} tier, "
            f"over {long}."
        ),
        "description": (
            f"{_subject()}: {bad_share} of the last {long} was bad ({breach(objective)}; "
            f"{percent_text(objective.allowed_bad)} is allowed). Burn {{{{ $value | humanize }}}}, alert above "
            f"{factor_text(tier)}. Budget left: {left}; at the last hour's rate it ends in {gone_in}."
        ),
        "runbook_url": objective.runbook_url or links.runbook_url(alertname),
        "dashboard_url": links.dashboard_url(_variables(spec, objective)),
    }


def exhausted_annotations(spec: Spec, objective: Objective, links: Links) -> dict[str, str]:
    """The annotations of an objective's spent budget."""
    window = duration_text(objective.window)
    return {
        "summary": f"Objective {objective.name} of {spec.service} has no error budget left.",
        "description": (
            f"{_subject()}: {{{{ $value | humanizePercentage }}}} of the budget of {window} is left "
            f"({breach(objective)}; {percent_text(objective.goal)} of events should be good)."
        ),
        "runbook_url": objective.runbook_url or links.runbook_url("LLMBudgetExhausted"),
        "dashboard_url": links.dashboard_url(_variables(spec, objective)),
    }


def service_annotations(spec: Spec, alertname: str, links: Links, *, summary: str, description: str) -> dict[str, str]:
    """The annotations of an alert that speaks of a service as a whole."""
    return {
        "summary": summary,
        "description": description,
        "runbook_url": links.runbook_url(alertname),
        "dashboard_url": links.dashboard_url({SERVICE_LABEL: quote(spec.service)}),
    }


def _variables(spec: Spec, objective: Objective) -> dict[str, str]:
    return {
        SERVICE_LABEL: quote(spec.service),
        promql.OBJECTIVE_LABEL: quote(objective.name),
        # Series of requests and latencies have no model `*`: an alert over all models opens Grafana's "All".
        MODEL_LABEL: (
            "{{ if eq $labels." + MODEL_LABEL + f' "{ALL_MODELS}" ' + "}}%24__all{{ else }}"
            f"{_label(MODEL_LABEL, ' | urlquery')}{{{{ end }}}}"
        ),
    }


def _label(name: str, pipe: str = "") -> str:
    return "{{ $labels." + name + pipe + " }}"


def _subject() -> str:
    environment = "{{ with $labels." + ENVIRONMENT_LABEL + " }} in {{ . }}{{ end }}"
    return f"{_label(SERVICE_LABEL)}{environment}, model {_label(MODEL_LABEL)}"


def _asked(record: str, objective: Objective, shown: str) -> str:
    """A template that asks for one sample of `record` by the alert's labels, or says that there is none."""
    matchers = ",".join(f"{label}=%q" for label in VERDICT_KEY[:-1])
    matchers += f",{promql.OBJECTIVE_LABEL}={promql.quoted(objective.name)}"
    text = promql.quoted(f"{record}{{{matchers}}}")
    values = " ".join(f"$labels.{label}" for label in VERDICT_KEY[:-1])
    asked = f"printf {text} {values} | query"
    return "{{ with " + asked + " }}{{ . | first | value | " + shown + " }}{{ else }}unknown{{ end }}"
