"""Windows in, verdicts out: percentiles, burn, budgets, alerts, troubles and drift."""
