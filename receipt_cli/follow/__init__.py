"""Parse a log that still grows, and finish with the receipt of the whole log.

In: a file or pipe, and when to stop. Out: snapshots for the live view, then the fold of all bytes read.
Start with ``loop``, then ``growth`` (files); ``jobs`` follows many logs, ``hooks`` runs commands.
"""
