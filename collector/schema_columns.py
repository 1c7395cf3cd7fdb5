"""The columns that the tables of `schema` are made of: each kind once, and those that many tables have in common.

What is not known is NULL, and only a column that says so may be. Text is never NULL: what has no name is ''.
"""

from sqlalchemy import BigInteger, Column, Double, Text


def text(name: str, comment: str, *, key: bool = False) -> Column[str]:
    return Column(name, Text(), primary_key=key, nullable=False, comment=comment)


def whole(name: str, comment: str, *, key: bool = False) -> Column[int]:
    return Column(name, BigInteger(), primary_key=key, nullable=False, autoincrement=False, comment=comment)


def whole_or_null(name: str, comment: str) -> Column[int]:
    return Column(name, BigInteger(), nullable=True, comment=comment)


def real(name: str, comment: str) -> Column[float]:
    return Column(name, Double(), nullable=False, comment=comment)


def real_or_null(name: str, comment: str) -> Column[float]:
    return Column(name, Double(), nullable=True, comment=comment)


def environment(*, key: bool = True) -> Column[str]:
    return text("environment", "Deployment environment; '' when unset.", key=key)


def service(*, key: bool = True) -> Column[str]:
    return text("service", "OpenTelemetry service.name.", key=key)


def model(*, key: bool = True) -> Column[str]:
    return text(
        "model",
        "Model name; unknown, other or * (all the models of an objective, or of a latency that has several).",
        key=key,
    )


def objective(*, key: bool = True) -> Column[str]:
    return text("objective", "Name of the objective in slo.yaml.", key=key)


def whose() -> tuple[Column[str], ...]:
    return environment(), service(), model()


def of_alert(name: str, tier: str) -> tuple[Column[str], ...]:
    """What tells an alert from others, as its table words the name and the tier."""
    of = text("name", name, key=True), model(), objective(), text("tier", tier, key=True)
    return environment(), service(), *of


def start() -> Column[int]:
    return whole("start_s", "Start of the step; a multiple of step_s.", key=True)


def step() -> Column[int]:
    return whole("step_s", "Length of the step; older rows are folded into longer steps.", key=True)
