"""Fuzzing: targets, seeds and the two engines that run them (``python -m tests.fuzz``)."""
