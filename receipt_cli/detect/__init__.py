"""Choose the grammars that explain a log, or fall back to generic parsing.

In: the body of a scanned log, and its grammars. Out: ``Detection``: the chosen grammars and the reasons. Start with ``choose``,
then ``parts`` (several trainers in one log) and ``generic`` (unknown trainers).
"""
