"""A small continuous-batching LLM server, for demonstrations and tests: real scheduling, random weights.

    cli -> api -> handover -> engine -> scheduler (blocks, prefix, sequence) -> runner (inputs, model, sampler, graphs)
           intake, replies              metrics, faults, text                       model -> operators, fused, kernels

One engine thread makes steps: the scheduler decides (a frozen value, no torch), the runner computes, the engine
settles. One event loop speaks HTTP. They meet in `handover`, once a step. The package imports nothing from its
neighbours in this repository, and they reach it only over HTTP, as they would any other server.
"""
