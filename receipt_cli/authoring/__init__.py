"""Help authors of grammars: lint, test, explain, and draft a grammar from a log.

In: grammar and marker files, logs. Out: findings with a place in the file, or the text of a draft.
Start with ``lint`` (one file), ``check`` (all that ``receipt grammar lint`` does).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "lint_files": "check",
    "lint_shipped": "check",
    "test_grammar": "check",
    "explain_log": "explain",
    "Question": "roles",
    "read_answers": "roles",
    "find_site": "site_search",
    "load_site": "site_files",
    "proposal_id": "proposal",
    "propose": "proposal",
    "reading_of": "proposal",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
