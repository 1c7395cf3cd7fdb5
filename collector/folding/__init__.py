"""Measurements in, what they add out: each into its step, each stream from where it stood, each request once."""
