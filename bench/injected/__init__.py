"""Faults put into a live demo server, and what the collector says of their causes.

    incidents ─▶ episode, on a stack ─▶ outcome ─▶ matrix

`incidents` is the table of what goes wrong, `stack` the processes that it goes wrong in, `episode` one incident from
quiet to quiet, `matrix` what was said of which.
"""
