"""How turns become figures, and figures verdicts."""

import pytest
from rig.figures import Figures, Row, Turn
from rig.promises import verdicts

CPU = Row("chunk, 64 streams apart", "us of CPU", "times", "nginx")
P99 = Row("TTFT p99, 256 streams", "ms", "over", "direct")


def figures_of(row: Row, **arms: list[float]) -> Figures:
    figures = Figures()
    for arm, values in arms.items():
        for number, value in enumerate(values):
            figures.add(number, arm, Turn({row: value}))
    return figures


def test_arms_are_compared_round_by_round_and_by_their_least() -> None:
    figures = figures_of(CPU, nginx=[10.0, 20.0, 40.0], sidecar=[12.0, 30.0, 44.0])
    found = figures.compared(CPU, "sidecar", "nginx", relation="times")
    assert found is not None
    assert (found.of_least, found.median, found.low, found.high) == pytest.approx((1.2, 1.2, 1.1, 1.5))


def test_a_round_that_one_arm_did_not_get_through_is_left_out() -> None:
    figures = figures_of(CPU, nginx=[10.0])
    figures.add(0, "sidecar", Turn())
    assert figures.compared(CPU, "sidecar", "nginx", relation="times") is None
    figures.add(1, "sidecar", Turn({CPU: 11.0}))
    assert figures.compared(CPU, "sidecar", "nginx", relation="times") is None
    figures.add(1, "nginx", Turn({CPU: 22.0}))
    found = figures.compared(CPU, "sidecar", "nginx", relation="times")
    assert found is not None
    assert found.median == pytest.approx(0.5)


def test_a_doubt_is_said_only_when_it_matters() -> None:
    figures = Figures()
    for share in (0.0, 0.01, 0.4):
        figures.add(0, "nginx", Turn({CPU: 1.0}, {"behind the pace": share, "spans missing": share}))
    assert list(figures.doubts(CPU, "nginx")) == ["spans missing: 1%"]


@pytest.mark.parametrize(
    ("own", "nginx", "word", "kept"),
    [(12.5, 10.0, "kept", True), (12.6, 10.0, "NOT KEPT", False), (5.0, 10.0, "kept", True)],
)
def test_a_promise_of_cpu_is_kept_up_to_its_factor(own: float, nginx: float, word: str, kept: bool) -> None:
    (verdict,) = verdicts(figures_of(CPU, nginx=[nginx], sidecar=[own]), ["nginx", "sidecar"])
    assert (verdict.kept, verdict.line.split("  ")[0].strip()) == (kept, word)


@pytest.mark.parametrize(
    ("own", "nginx", "word"), [(0.9, 0.5, "kept"), (1.7, 0.5, "NOT KEPT"), (9.0, 7.0, "not judged")]
)
def test_latency_that_nginx_cannot_keep_either_is_not_judged(own: float, nginx: float, word: str) -> None:
    figures = figures_of(P99, direct=[0.2], nginx=[nginx + 0.2], sidecar=[own + 0.2])
    (verdict,) = verdicts(figures, ["direct", "nginx", "sidecar"])
    assert verdict.line.split("  ")[0].strip() == word
    assert verdict.kept == (word == "kept")


def test_nothing_is_said_of_what_was_not_asked_for() -> None:
    assert list(verdicts(figures_of(CPU, nginx=[1.0]), ["nginx"])) == []
    assert list(verdicts(figures_of(CPU, sidecar=[1.0]), ["sidecar"])) == []


def test_an_arm_that_did_not_get_through_keeps_no_promise() -> None:
    (verdict,) = verdicts(figures_of(CPU, nginx=[1.0]), ["nginx", "sidecar"])
    assert not verdict.kept
    assert "did not get through" in verdict.line
