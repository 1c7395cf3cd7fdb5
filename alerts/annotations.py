"""What an alert says: a static summary, a description with the numbers of the moment, and where to go next.

Descriptions are Prometheus templates: `$value` is what the alert's expression gives, and a budget that the expression
does not hold is asked for with `query`, by the alert's own labels. `%q` quotes a label's value as PromQL does, so a
model name with quotes or backslashes does no harm.
"""

from dataclasses import dataclass
from urllib.parse import quote

from slo import promql
from slo.burn import Tier, factor_text
from slo.objective import Objective, PolicyStep, Spec
from slo.promql import INSTANCE_LABEL, SERVICE_KEY, VERDICT_KEY
from slo.quantity import duration_text, percent_text
from slo.signals import (
    ALL_MODELS,
    BAD,
    E2E,
    ENGINE_PREEMPTIONS,
    ENGINE_WAITING,
    ENVIRONMENT_LABEL,
    GPU_THROTTLE,
    KV_OCCUPANCY,
    LABELS,
    MODEL_LABEL,
    OLDEST_AGE,
    REASON,
    RESULT,
    SERVICE_LABEL,
    SIGNALS,
    SLO_EVENTS,
    SOURCE,
    TTFT,
    Metric,
)
from slo.trouble import BUDGET_EXHAUSTED, BUDGET_POLICY, THROTTLE_REASONS
from slo.words import breach

ALERT_PLACE = "{alertname}"


@dataclass(frozen=True, slots=True)
class Links:
    """What annotations lead to: runbooks by a pattern with `{alertname}`, dashboards below the root of Grafana (may be
    empty), and by `asks` Prometheus itself, which fills in what the alert's own expression does not hold."""

    runbook: str = "runbooks/{alertname}.md"
    grafana: str = ""
    asks: bool = True

    def runbook_url(self, alertname: str) -> str:
        return self.runbook.replace(ALERT_PLACE, alertname)

    def dashboard_url(self, values: dict[str, str]) -> str:
        """The overview with its variables set and the last six hours; a template (`{{ ... }}`) stays as it is."""
        variables = "&".join(f"var-{key}={value}" for key, value in values.items())
        return f"{self.grafana.rstrip('/')}/d/{promql.OVERVIEW_UID}?{variables}&from=now-6h&to=now"


@dataclass(frozen=True, slots=True)
class Said:
    """What an alert says: a sentence without a value, and a template with the numbers of the moment."""

    summary: str
    description: str


def burn_annotations(spec: Spec, objective: Objective, tier: Tier, links: Links) -> dict[str, str]:
    """The annotations of a tier's alert."""
    return {
        "summary": (
            f"Objective {objective.name} of {spec.service} spends its error budget too fast: the {tier.name} tier, "
            f"over {duration_text(tier.long_s)}."
        ),
        "description": _asked_burn(objective, tier) if links.asks else _plain_burn(objective, tier),
        "runbook_url": objective.runbook_url or links.runbook_url(SIGNALS[objective.signal].alert),
        "dashboard_url": links.dashboard_url(_variables(spec, objective)),
    }


def _asked_burn(objective: Objective, tier: Tier) -> str:
    long = duration_text(tier.long_s)
    bad_share = _asked(promql.error_ratio(tier.long_s), objective, "humanizePercentage")
    left = _asked(promql.BUDGET_REMAINING, objective, "humanizePercentage")
    gone_in = _asked(promql.BUDGET_EXHAUSTED_IN, objective, "humanizeDuration")
    return (
        f"{_subject()}: {bad_share} of the last {long} was bad ({breach(objective)}; "
        f"{percent_text(objective.allowed_bad)} is allowed). Burn {{{{ $value | humanize }}}}, alert above "
        f"{factor_text(tier)}. Budget left: {left}; at the last hour's rate it ends in {gone_in}."
        f"{_worst(objective, tier)}{_causes(objective)}"
    )


def _plain_burn(objective: Objective, tier: Tier) -> str:
    return (
        f"{_subject()}: burn {{{{ $value | humanize }}}} over the last {duration_text(tier.long_s)}, alert above "
        f"{factor_text(tier)} ({breach(objective)}; {percent_text(objective.allowed_bad)} is allowed)."
    )


def exhausted_annotations(spec: Spec, objective: Objective, links: Links) -> dict[str, str]:
    """The annotations of an objective's spent budget."""
    window = duration_text(objective.window)
    return {
        "summary": f"Objective {objective.name} of {spec.service} has no error budget left.",
        "description": (
            f"{_subject()}: {{{{ $value | humanizePercentage }}}} of the budget of {window} is left "
            f"({breach(objective)}; {percent_text(objective.goal)} of events should be good)."
        ),
        "runbook_url": objective.runbook_url or links.runbook_url(BUDGET_EXHAUSTED),
        "dashboard_url": links.dashboard_url(_variables(spec, objective)),
    }


def policy_annotations(spec: Spec, objective: Objective, step: PolicyStep, links: Links) -> dict[str, str]:
    """The annotations of a step of the budget policy: what is to be done, in the words of the spec."""
    at, do = percent_text(step.budget_left), step.do.replace("{{", '{{ "{{" }}')
    return {
        "summary": f"The error budget of objective {objective.name} of {spec.service} asks for a step of its policy.",
        "description": (
            f"{_subject()}: {{{{ $value | humanizePercentage }}}} of the budget of {duration_text(objective.window)} "
            f"is left, and from {at} on the policy says: {do}"
        ),
        "runbook_url": objective.runbook_url or links.runbook_url(BUDGET_POLICY),
        "dashboard_url": links.dashboard_url(_variables(spec, objective)),
    }


def service_annotations(spec: Spec, alertname: str, said: Said, links: Links) -> dict[str, str]:
    """The annotations of an alert that speaks of a service as a whole."""
    return {
        "summary": said.summary,
        "description": said.description,
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
    series = f"{record}{{{_like_the_alert(VERDICT_KEY[:-1])},{_of(objective)}}}"
    return _query(series, VERDICT_KEY[:-1], f"{{{{ . | first | value | {shown} }}}}", "unknown")


def _worst(objective: Objective, tier: Tier) -> str:
    """Which model and which instance have the most of what is bad, where the alert does not say it."""
    models = f'{promql.error_ratio(tier.long_s)}{{{_like_the_alert(SERVICE_KEY)},{_of(objective)},{MODEL_LABEL}!="*"}}'
    model = _query(
        f"topk(1, {models})",
        SERVICE_KEY,
        f' Worst model: {{{{ . | first | label "{MODEL_LABEL}" }}}}, '
        "{{ . | first | value | humanizePercentage }} bad.",
    )
    bad = f'{SLO_EVENTS.prometheus}{{{_like_the_alert(SERVICE_KEY)},{_of(objective)},{LABELS[RESULT]}="{BAD}"}}'
    instance = _query(
        f"topk(1, sum by ({INSTANCE_LABEL}) (increase({bad}[{duration_text(tier.long_s)}])) > 0)",
        SERVICE_KEY,
        f' Most bad events: instance {{{{ . | first | label "{INSTANCE_LABEL}" }}}}.',
    )
    return f'{{{{ if eq $labels.{MODEL_LABEL} "{ALL_MODELS}" }}}}{model}{{{{ end }}}}{instance}'


def _causes(objective: Objective) -> str:
    """What is known of the engines and GPUs behind a slow answer; nothing of those that say nothing."""
    of = f"{{{_like_the_alert(SERVICE_KEY)}}}"
    reasons = f'{{{_like_the_alert(SERVICE_KEY)},{LABELS[REASON]}=~"{"|".join(THROTTLE_REASONS)}"}}'
    asked: tuple[tuple[str, str, str], ...] = (
        (f"max({KV_OCCUPANCY.prometheus}{of})", "humanizePercentage", "KV cache full to {} at most."),
        (f"sum(increase({ENGINE_PREEMPTIONS.prometheus}{of}[5m])) > 0", "humanize", "Preemptions in 5m: {}."),
        (f"sum({ENGINE_WAITING.prometheus}{of}) > 0", "humanize", "Waiting in engines: {}."),
        (f"max({OLDEST_AGE.prometheus}{of}) > 0", "humanizeDuration", "Oldest request without a token: {}."),
        (
            f"max(rate({GPU_THROTTLE.prometheus}{reasons}[5m])) > 0",
            "humanizePercentage",
            "GPU clocks held back for {}.",
        ),
    )
    if SIGNALS[objective.signal].threshold == "share":
        asked = asked[1:]  # the alert itself says how full the cache is
    told = "".join(
        _query(query, SERVICE_KEY, " " + words.format(f"{{{{ . | first | value | {shown} }}}}"))
        for query, shown, words in asked
    )
    return (_stages() if SIGNALS[objective.signal].threshold == "duration" else "") + told


def _stages() -> str:
    """Where the time of the requests goes: the queue of the engines, prefill, decode. As Little's law has it, what a
    sum of latencies grows by in a second is how many requests are in that stage; a request that ends is counted."""
    of = _like_the_alert(SERVICE_KEY)

    def seconds(metric: Metric) -> str:
        sums = (f'{metric.prometheus}_sum{{{of},{LABELS[SOURCE]}{which}"engine"}}' for which in ("!=", "="))
        own, engine = (f"sum(rate({sum_}[5m]))" for sum_ in sums)
        return f"({own} or {engine})"

    all_of_it, first = f"({seconds(E2E)} > 0)", seconds(TTFT)
    queued = f"sum(avg_over_time({ENGINE_WAITING.prometheus}{{{of}}}[5m]))"
    share = "{{ . | first | value | humanizePercentage }}"

    def asked(query: str, found: str, otherwise: str = "") -> str:
        return _query(query, SERVICE_KEY * (query.count("%q") // len(SERVICE_KEY)), found, otherwise)

    before = asked(
        f"clamp_max({queued} / {all_of_it}, 1)",
        f"queue {share}, prefill " + asked(f"clamp_min({first} - {queued}, 0) / {all_of_it}", share),
        "queue and prefill " + asked(f"clamp_max({first} / {all_of_it}, 1)", share),
    )
    after = f"clamp_min({all_of_it} - {first}, 0) / {all_of_it}"
    return asked(after, f" Time of requests: {before}, decode {share}.")


def _of(objective: Objective) -> str:
    return f"{promql.OBJECTIVE_LABEL}={promql.quoted(objective.name)}"


def _like_the_alert(labels: tuple[str, ...]) -> str:
    """Matchers whose values `_query` takes from the alert."""
    return ",".join(f"{label}=%q" for label in labels)


def _query(query: str, labels: tuple[str, ...], found: str, otherwise: str = "") -> str:
    """A template that asks Prometheus, with the alert's own `labels` for each `%q`. One that the alert lacks is empty
    in Prometheus, but nothing at all in vmalert, which then cannot ask, and does not fire."""
    values = " ".join(f'(or $labels.{label} "")' for label in labels)
    asked = f"printf {promql.quoted(query)} {values} | query"
    return "{{ with " + asked + " }}" + found + ("{{ else }}" + otherwise if otherwise else "") + "{{ end }}"
