"""The vocabulary: what is measured, what is promised, and the arithmetic between them.

Rooms: `signals` (names), `quantity` (durations, shares and sizes as people write them), `objective` (slo.yaml),
`burn` (tiers and budgets), `words` (an objective as people read it), `promql` (the expressions that rules and
dashboards share), `source` (YAML with positions), `flags` (what all command lines share), `cli`.
Knows nothing of sockets, clocks, databases or telemetry libraries: pydantic and PyYAML only.
"""
