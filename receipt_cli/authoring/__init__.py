"""Help authors of grammars: lint, test, explain, and draft a grammar from a log.

In: grammar and marker files, logs. Out: findings with a place in the file, or the text of a draft.
Start with ``lint`` (one file), then ``explain`` (what a grammar does to a log, and all that ``receipt grammar lint`` checks).
"""
