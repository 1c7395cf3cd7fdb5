"""What bench/alerts.py judges: a service, what happens to it, its counts, and who is told.

`service` says how requests fare, `incidents` what happens, `counts` draws what the sidecar would have counted,
`verdicts` lets two sets of tiers judge it, `paging` says what a person is told of that, `summary` sums it up in tables,
`promises` holds it against what must hold.
"""
