"""Choose the grammars that explain a log, or fall back to generic parsing.

In: the body of a scanned log, the grammars that scanned it. Out: ``Detection``: the chosen grammars and why.
Start with ``choose``, then ``parts`` (several trainers in turn) and ``generic`` (unknown trainers).
"""
