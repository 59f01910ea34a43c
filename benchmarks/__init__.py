"""Measure the cost of ``receipt parse`` against other programs on the same logs, and the quality of its answers."""
