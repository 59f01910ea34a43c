"""Read what experiment trackers and loggers wrote of a run: event files, databases, tables of metrics.

In: a file or a folder. Out: the run, its values as one record a step. Start with ``recognise``, then ``curves`` (which
name is which metric, and which record is a step's), then the module of a format.
"""
