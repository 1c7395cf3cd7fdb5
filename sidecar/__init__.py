"""The stream eye: sees every token of an inference server's answers and says how long users waited.

Pure rooms: `sse` (bytes to events), `encoding` (packed bytes to bytes), `body` (a response to events), `facts` (what
one event can say), `dialects` and its pages (what the events of each API say), `exchange` (one request's timeline) and
its `record`, `deadlines` (good or bad, and when), `scrape` and `engines` (a server's own metrics). They take bytes and
times and give frozen values; none reads a clock or opens a socket. The shells around them hold sockets, clock and
OpenTelemetry.
"""
