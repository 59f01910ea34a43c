"""Collect the facts of a job at its start: git, packages, hardware, flags.

In: environment variables, a header file, the log's own lines, the local machine. Out: a header with a source for every value.
Start with ``collect`` (all sources in order of priority).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "collect": "collect_header renew_log_facts",
    "document": "empty_header merge",
    "facts": "HeaderFact",
    "from_log": "log_facts",
    "header_file": "header_document read_header_file",
    "host": "now_rfc3339",
    "interpreter": "command_interpreter process_interpreter",
    "values": "checked escape text",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
