"""The stream eye: sees every token of an inference server's answers and says how long users waited.

    a request ─▶ proxy, relay (backlog) | middleware, asgi_relay ─▶ watch ─▶ exchange ─▶ deadlines ─▶ eye ─▶ tally
                                                                                                tally ─▶ pages, emit
    an engine ─▶ poller ─▶ metrics_text ─▶ scrape, engine_view ─▶ pages, emit

Each folder is a floor: it knows floors above it here, and none below. Rooms with a * are shells, which hold sockets,
clocks, threads and chance; the others take bytes, times and values, and give values. The ground and the start lie
beside the folders.

    the ground        limits address settings* otlp_settings log* daemon_thread*
    http              head_shape http_head http_read encoding trace_context
    counting          tally series histogram exemplar
    said              dialects dialects_openai dialects_native overload glimpse sse body facts tokens template
                      whole exchange record
    transport         listener* trust tls* tls_transport* certificates* upstream*
    engine            engines engine_search metrics_text scrape engine_requests engine_counts engine_histograms
                      engine_growth engine_latencies engine_view
    usage             usage_policy usage_ask usage_hide usage_pass*
    guarding          queue_guard drain calibration error_ratios
    judging           eye watch* backlog deadlines arming deadline_timer* labels faults
    polling           poller* engine_eye backing
    gpus              gpu* gpu_driver* gpu_facts
    relaying          proxy* relay* fast_path upload client own_answer
    telling           emit* delivery* otlp_wire otlp_spans otlp_metrics pages* exposition admin* accept
    configuration     options tls_options plan*
    serving           service* scrape_only* telemetry* lifecycle* spec_watch* proxy_server*
    within            asgi* asgi_relay* attachment*
    workers           workers* worker_slot* worker_pipe* workers_eye shared_address*
    the start         cli* middleware* worker*

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
