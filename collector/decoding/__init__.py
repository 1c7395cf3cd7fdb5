"""OTLP bytes in, measurements out: points, distributions and spans of any sender."""
