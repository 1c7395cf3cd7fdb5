"""A collector's status as the demo meets it, to be changed by each test."""

from typing import Any


def objective(name: str = "ttft", **changed: Any) -> dict[str, Any]:
    """One objective of `/api/v1/status`, healthy unless told otherwise."""
    return {
        "service": "demo",
        "model": "*",
        "objective": name,
        "signal": "ttft",
        "target": 0.95,
        "threshold": 0.5,
        "unit": "s",
        "state": "ok",
        "windows": [
            {"window": "15s", "window_s": 15, "good": 60, "bad": 0, "burn": 0.0, "coverage": 1.0},
            {"window": "1m", "window_s": 60, "good": 230, "bad": 10, "burn": 0.83, "coverage": 1.0},
            {"window": "10m", "window_s": 600, "good": 0, "bad": 0, "burn": None, "coverage": 0.2},
        ],
        "budget": {"good": 230, "bad": 10, "remaining": 0.62, "exhausted_in_s": 5400},
        "percentiles": {"1m": {"count": 240, "p50": 0.031, "p95": 0.0474, "p99": None}},
        "alerts": [],
        "tiers": [{"name": "fast", "long": "1m", "short": "15s", "factor": 5.0, "notify": "page"}],
        **changed,
    }


def alert(name: str = "LLMTTFTBudgetBurn", **changed: Any) -> dict[str, Any]:
    """One alert of the whole status, as it fires."""
    return {
        "service": "demo",
        "model": "*",
        "objective": "ttft",
        "name": name,
        "tier": "fast",
        "state": "firing",
        "since_s": 1699999700,
        "notify": "page",
        "annotations": {"summary": "short", "description": "60 of 100 events were bad"},
        **changed,
    }


def status(*objectives: dict[str, Any]) -> dict[str, Any]:
    return {"at_s": 1700000000, "objectives": list(objectives)}
