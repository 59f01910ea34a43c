"""Parse grammars: YAML files of rules, fields and samples.

In: a grammar file, or ``ID@vN``. Out: an immutable ``Grammar`` with its digest; a broken file raises ``DataError`` with the line.
Start with ``model`` (the types), ``parse`` (a file), ``catalog`` (what ships).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "catalog": "INDUCED INDUCED_PATH definition find_recorded get_grammar list_grammars read_entry read_file shipped shipped_by",
    "coverage": "COLUMNS markdown matrix",
    "digit_sensitivity": "Compared digits_compared kept_after",
    "length_sensitivity": "Between lengths_compared",
    "model": "Block COMPANION COUNTERS Evidence Field Grammar Mapped Pairs Rule Sample Table compile_pattern",
    "parse": "build_grammar check_patterns load_grammar",
    "parts": "PARTS abbreviate",
    "site": "NO_SITE Site",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
