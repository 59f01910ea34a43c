"""Read the files of experiment trackers and loggers: event files, databases, tables of metrics.

In: a file or a folder. Out: a run with one record for each step. Start with ``recognise``, then ``curves`` (the meaning of
names, and the kinds of records), then the module of a format.
"""
