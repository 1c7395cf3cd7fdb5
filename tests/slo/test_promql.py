"""Record names, matchers and the shared expressions."""

from decimal import Decimal

import pytest

from slo import promql
from slo.objective import Spec, parse

PLAIN = "service: chat\nobjectives: [{name: ttft, signal: ttft, target: 95%, threshold: 1s}]\n"


def spec(text: str = PLAIN) -> Spec:
    (found,) = parse(text)
    return found


def test_records_are_named_as_the_interface_says() -> None:
    assert [
        promql.slo_bad(300),
        promql.slo_total(300),
        promql.error_ratio(3600),
        promql.burn_rate(3600),
        promql.coverage(3600),
        promql.BUDGET_REMAINING,
        promql.BUDGET_EXHAUSTED_IN,
    ] == [
        "firsttoken:slo_bad:increase5m",
        "firsttoken:slo_total:increase5m",
        "firsttoken:slo_error:ratio1h",
        "firsttoken:burn_rate:ratio1h",
        "firsttoken:coverage:ratio1h",
        "firsttoken:error_budget_remaining:ratio",
        "firsttoken:budget_exhausted_in:seconds",
    ]


@pytest.mark.parametrize(
    ("window_s", "label"), [(15, "15s"), (90, "90s"), (300, "5m"), (21600, "6h"), (86400, "1d"), (2419200, "28d")]
)
def test_windows_are_labelled_as_everywhere(window_s: int, label: str) -> None:
    for record in (promql.slo_bad, promql.bad_spans, promql.telemetry, promql.burn_rate):
        assert record(window_s).endswith(label)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("llama", '"llama"'),
        ('say "x"', '"say \\"x\\""'),
        ("C:\\m", '"C:\\\\m"'),
        ("a\nb", '"a\\nb"'),
        ("é/.*", '"é/.*"'),
    ],
)
def test_any_text_is_a_literal(text: str, literal: str) -> None:
    assert promql.quoted(text) == literal


def test_a_matcher_keeps_the_operator_of_its_key() -> None:
    found = promql.selector({"a": "1", "b!=": "2", "c=~": "3|4", "d!~": "5"})
    assert found == '{a="1",b!="2",c=~"3|4",d!~"5"}'


def test_the_environment_is_asked_for_only_where_the_spec_names_it() -> None:
    (objective,) = spec().objectives
    assert promql.of_objective(spec(), objective) == '{service_name="chat",objective="ttft"}'
    prod = spec("environment: prod\n" + PLAIN)
    assert promql.of_service(prod, instance="a") == '{environment="prod",service_name="chat",instance="a"}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("0.001"), "0.001"),
        (Decimal(1) / 3, "0.3333333333"),
        (1e-7, "0.0000001"),
        (60.0, "60"),
        (1e15, "1" + "0" * 15),
    ],
)
def test_numbers_are_fixed_point(value: Decimal | float, text: str) -> None:
    assert promql.number(value) == text
