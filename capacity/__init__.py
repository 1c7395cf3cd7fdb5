"""Load on a server, measured honestly, and what follows from it: capacity, replicas, batch sizes.

    cli -> load (schedule, prompt) -> sending -> client -> reply
           summary <- record
           certify/  the highest rate that keeps the objectives, shown and not guessed
           sizing/   how many replicas a recorded demand needs
           batch/    the largest batch size that keeps the objectives
           stored/   a collector's database: results in, recorded requests out
           report/   the drawing room: pages with charts that need nothing else, and pictures of them
    traces, arrivals   recorded requests, and what their times are like; spec, options: the flags that all share
    printed, progress  what a command says on its output, and while it runs; reports: the files that a report goes to
    exchange           one question to a server, outside any load

`schedule`, `prompt`, `reply`, `record`, `summary` and `arrivals` are pure; `client`, `sending`, `load` and
`exchange` hold the sockets and the clock. The package knows `slo` (objectives, names of outcomes and classes), in
`stored` the collector's tables, and no other room.
"""
