"""Load on a server, measured honestly: open-loop schedules, a streaming client, and what its records say.

    cli -> load (schedule, prompt) -> client -> reply
           summary <- record

`schedule`, `prompt`, `reply`, `record` and `summary` are pure; `client` and `load` hold the sockets and the clock. The
package knows `slo` (names of outcomes and classes) and no other room.
"""
