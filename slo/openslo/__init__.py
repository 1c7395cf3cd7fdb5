"""SLOs that people already have: OpenSLO v1 and Sloth specs into slo.yaml, and slo.yaml out as OpenSLO.

    a file ─▶ reading (OpenSLO) | sloth ─▶ promise ─▶ carrying ─▶ authored ─▶ slo.yaml
                          each asks  query  what its PromQL measures
    slo.yaml ─▶ writing ─▶ OpenSLO

Their indicators are queries, ours are signals: `query` says which signal a query measures, or why it is none of them.
What cannot be carried over is said of each objective, and nothing is guessed silently. `cli` alone reads and writes
files.
"""
