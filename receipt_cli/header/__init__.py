"""Collect the facts of a job at its start: git, packages, hardware, flags.

In: environment variables, a header file, the log's own lines, the local machine. Out: a header in which every value has a source.
Start with ``collect`` (all sources in order of priority).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "collect_header": "collect",
    "renew_log_facts": "collect",
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
