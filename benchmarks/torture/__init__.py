"""Hostile and huge logs, made while they are read, each with a known run hidden in it: ``python -m benchmarks.torture``."""
