"""Parse grammars: YAML files of rules, fields and samples.

In: a grammar file, or ``ID@vN``. Out: an immutable ``Grammar`` with its digest; a broken file raises ``DataError`` with the line.
Start with ``model`` (the types), ``parse`` (a file), ``catalog`` (what ships).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "INDUCED": "catalog",
    "definition": "catalog",
    "find_recorded": "catalog",
    "get_grammar": "catalog",
    "list_grammars": "catalog",
    "read_entry": "catalog",
    "read_file": "catalog",
    "shipped": "catalog",
    "shipped_by": "catalog",
    "COLUMNS": "coverage",
    "markdown": "coverage",
    "matrix": "coverage",
    "kept_after": "digit_sensitivity",
    "Block": "model",
    "COUNTERS": "model",
    "Evidence": "model",
    "Field": "model",
    "Grammar": "model",
    "LazyFields": "model",
    "Mapped": "model",
    "Pairs": "model",
    "Rule": "model",
    "Sample": "model",
    "Table": "model",
    "compile_pattern": "model",
    "build_grammar": "parse",
    "check_patterns": "parse",
    "PARTS": "parts",
    "abbreviate": "parts",
    "NO_SITE": "site",
    "Site": "site",
    "load_grammar": "parse",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
