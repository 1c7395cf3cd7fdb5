"""Load on a server, measured honestly: open-loop schedules, a streaming client, and what its records say.

    cli -> load (schedule, prompt) -> sending -> client -> reply
           summary <- record
           certify/  the highest rate that keeps the objectives, shown and not guessed

`schedule`, `prompt`, `reply`, `record` and `summary` are pure; `client`, `sending` and `load` hold the sockets and the
clock. The package knows `slo` (objectives, names of outcomes and classes) and no other room.
"""
