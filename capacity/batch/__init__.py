"""The batch size a server should run at: the largest that keeps its promises (`capacity batch`).

    cli -> sitting -> search -> fit, waiting, verdict
           server -> outstanding, knob              (the server under test, by real sockets)
           recorded                                 (the passive form: what the collector saw in production)
           result -> kv, paste -> report

`search` and everything under it is pure: it asks (`trial`) for a batch to be set and loaded and hears what came of it.
`server` alone turns the knob; whatever happens, it is turned back. Evidence and promises are those of `certify`.
"""
