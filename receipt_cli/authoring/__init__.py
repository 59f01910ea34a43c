"""authoring."""

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
