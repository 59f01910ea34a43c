"""Parse grammars: YAML files of rules, fields and samples.

In: a grammar file, or ``ID@vN``. Out: an immutable ``Grammar`` with its digest; a broken file raises ``DataError`` with the line.
Start with ``model`` (the types), ``parse`` (a file), ``catalog`` (shipped grammars).
"""
