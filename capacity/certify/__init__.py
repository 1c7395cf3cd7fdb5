"""The certified bracket: the highest rate at which a server is shown to keep its objectives (`capacity certify`).

    cli -> sitting -> search -> judge -> evidence -> distributions
                      endpoint -> workload, promises, facts          (the server, by real sockets)
           account, result, report

`search` and everything under it is pure: it asks (`trial`) for load and hears what came of it. `endpoint` alone holds
sockets and a clock. `account` remembers what was heard, so that a search can be taken up again and judged anew.
"""
