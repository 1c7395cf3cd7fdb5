"""The stream eye: sees every token of an inference server's answers and says how long users waited.

    a request ─▶ proxy, relay (backlog) | middleware, asgi_relay ─▶ watch ─▶ exchange ─▶ deadlines ─▶ eye ─▶ tally
                                                                                                tally ─▶ pages, emit
    an engine ─▶ poller ─▶ metrics_text ─▶ scrape, engine_view ─▶ pages, emit

The rooms, by what they are about. Those with a * are shells, which hold sockets, clocks, threads and chance; the others
take bytes, times and values, and give values.

    the start         cli* options settings* tls_options otlp_settings plan* limits log*
    one process       service* scrape_only* telemetry* lifecycle* daemon_thread* spec_watch*
    several of them   workers* worker_slot* worker_pipe* worker* workers_eye shared_address*
    clients           proxy_server* proxy* listener* address trust client own_answer
    the server        upstream* certificates* tls* tls_transport*
    a request's way   relay* fast_path upload
    within a server   middleware* attachment* asgi* asgi_relay*
    HTTP/1.1          head_shape http_head http_read encoding trace_context
    what is asked     dialects dialects_openai dialects_native glimpse
    what is said      sse body facts tokens template whole exchange record
    usage asked for   usage_policy usage_ask usage_hide usage_pass*
    judging           eye watch* backlog deadlines deadline_timer* labels faults
    counting          tally series histogram exemplar
    the engine        engines engine_search poller* metrics_text scrape
    its requests      engine_requests engine_counts engine_histograms engine_growth engine_latencies engine_view
    without requests  engine_eye backing
    GPUs              gpu* gpu_driver* gpu_facts
    telling           emit* delivery* otlp_wire otlp_spans otlp_metrics pages* exposition admin* accept

What can go wrong has one room that says so and one border where it ends. None of these leaves the process.

    UsageError     settings        a flag, variable or file is wrong         cli: one line, exit 2
    SettingError   otlp_settings   so is a standard variable (ValueError)    options: a UsageError
    ListenError    listener        an address cannot be had                  cli: one line, exit 2
    WorkersError   workers         no worker starts                          cli: one line, exit 1
    BadAnswerError http_read       the server's bytes are no HTTP/1.1        relay: the client gets 502
    PollError      poller          a page gives no answer that can be used   poller: counted by reason
    UnpackError    encoding        a packed body cannot be read              body: the answer counts as unparsed
    NvmlError      gpu_driver      a GPU refuses a question                  gpu: that answer is absent
    OrderError     exchange        a shell told of things out of order       faults: counted, the request goes on
"""
