"""The queue guard: when a first token will come, said before the request is let through."""
