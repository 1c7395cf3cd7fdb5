"""Tests of `alerts`."""
