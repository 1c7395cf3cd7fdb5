"""GPUs through NVML: each metric left out alone where it is not supported."""
