"""Help authors of grammars: lint, test, explain, and draft a grammar from a log.

In: grammar and marker files, logs. Out: findings with a place in the file, or the text of a draft.
Start with ``lint`` (one file), then ``site_files`` (folders of a site's grammars and markers).
"""
