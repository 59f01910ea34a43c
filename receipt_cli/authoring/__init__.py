"""Help authors of grammars: lint, test, explain, and draft a grammar from a log.

In: grammar and marker files, logs. Out: findings with a place in the file, or the text of a draft.
Start with ``lint`` (one file), ``check`` (all that ``receipt grammar lint`` does).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "check": "lint_files lint_shipped test_grammar",
    "explain": "explain_log",
    "roles": "Question read_answers",
    "site_search": "find_site",
    "site_files": "load_site",
    "proposal": "proposal_id propose reading_of",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
