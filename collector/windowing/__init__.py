"""Rolling windows over event time, kept by adding what comes and taking off what leaves."""
