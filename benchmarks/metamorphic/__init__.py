"""Relations between a log and the same log rearranged: what must not change in the receipt, and how often it does.

``python -m benchmarks.metamorphic [FOLDER] [--only NAME] [--details]`` prints a table of violations by relation.
"""
