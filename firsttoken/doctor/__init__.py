"""`firsttoken doctor`: looks at a running stack and says what is missing or wrong, each with its fix.

    cli ─▶ look* ─▶ ask* ─▶ facts ─▶ checks ─▶ findings ─▶ report
                     └───▶ probe* (one streamed request, only when asked for)

`look` asks whoever was named, and whom a Prometheus names in turn; the rooms beside it turn answers into values:
`engine_facts` a server's own pages, `page` the pages of sidecars and collectors, `collector_facts`, `prometheus_facts`,
`alertmanager_facts`. `checks` holds pure functions, one a row of the table in `checks.table`: all facts in, findings
out. `routing` knows to whom an Alertmanager gives an alert. Rooms with a * are shells, which hold sockets, threads and
clocks.

Everything here reads, and nothing is changed anywhere. No credential of a URL is printed; what others say goes through
`address.plain_text` before it reaches a terminal.
"""
