"""The storm of `bench/soak.py`: requests whose fate is known beforehand, and all that they meet.

    storm ─▶ sidecar ─▶ source          sidecar ─OTLP─▶ sink

Each request carries the script of its own answer, so that whoever sends it knows how it must end.
"""
