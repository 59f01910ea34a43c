"""Collect the captured header of a receipt: one module for each source of facts, every value with its origin.

In: environment, header file, facts of the log, and on request this machine. Out: the header document and notes for stderr.
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "collect_header": "collect",
    "empty_header": "document",
    "merge": "document",
    "HeaderFact": "facts",
    "log_facts": "from_log",
    "header_document": "header_file",
    "read_header_file": "header_file",
    "DISTRIBUTIONS": "host",
    "cuda_of": "host",
    "now_rfc3339": "host",
    "run_program": "program",
    "checked": "values",
    "escape": "values",
    "text": "values",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
