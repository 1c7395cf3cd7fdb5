"""What a live service tells its pager, by either path: Prometheus with Alertmanager, and the collector by itself.

    case, played on a service ─▶ what both pagers were told ─▶ verdict

`spec` is the contract, `service` the processes, `quota` a gateway before a server, `cases` the table of what happens,
`account` what a pager makes of its messages, `verdict` what of them was right.
"""
