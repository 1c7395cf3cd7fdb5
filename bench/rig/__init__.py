"""The test stand of `bench/proxy.py`: a server that costs little, a client that costs little, and what stands between.

    client ─▶ arm (nginx, the sidecar, ...) ─▶ source         the sidecar ─OTLP─▶ source

`source` and `client` are the two ends, `arms` the processes between them, `stand` all of it running, `turns` what one
arm does in one turn of a measurement, `figures` what comes of many turns, `promises` what the sidecar may cost.
"""
