"""Check grammars and write new ones: lint, test on a log, explain a choice, propose a draft.

In: the text of a grammar, or a log. Out: ``problems.Finding``, tables as plain data, or the ``Proposal`` of a draft.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "lint_files": "check",
    "lint_shipped": "check",
    "test_grammar": "check",
    "explain_log": "explain",
    "proposal_id": "proposal",
    "propose": "proposal",
    "reading_of": "proposal",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
