"""The stream eye: sees every token of an inference server's answers and says how long users waited.

Pure rooms: `sse` (bytes to events), `encoding` (packed bytes to bytes), `body` (a response to events), `facts` (what
one event can say), `dialects` and its pages (what the events of each API say), `exchange` (one request's timeline) and
its `record`, `deadlines` (good or bad, and when), `scrape` and `engines` (a server's own metrics). They take bytes and
times and give frozen values; none reads a clock or opens a socket. The shells around them hold sockets, clock and
OpenTelemetry.

What can go wrong has one room that says so and one border where it ends. None of these leaves the process.

    UsageError     settings        a flag, variable or file is wrong         cli: one line, exit 2
    SettingError   otlp_settings   so is a standard variable (ValueError)    options: a UsageError
    ListenError    listener        an address cannot be had                  cli: one line, exit 2
    WorkersError   workers         no worker starts                          cli: one line, exit 1
    BadAnswerError http_read       the server's bytes are no HTTP/1.1        relay: the client gets 502
    PollError      poller          a page gives no answer that can be used   poller: counted by reason
    UnpackError    encoding        a packed body cannot be read              body: the answer counts as unparsed
    NvmlError      gpu_driver      a GPU refuses a question                  gpu: that answer is absent
    ExchangeError  exchange        of it there is only one kind:
      OrderError                   a shell told of things out of order       faults: counted, the request goes on
"""
