"""Load the data that ships: metrics, failure markers, accelerators, units.

In: YAML in ``grammars/`` and ``schemas/``, or its compiled form. Out: frozen tables; a broken file raises ``DataError``.
Start with ``metrics`` (the registry), ``resources`` (where the files are).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "Device": "accelerators",
    "load_peaks": "accelerators",
    "find_compiled": "compiled",
    "load_shipped": "compiled",
    "unpack": "compiled",
    "Catalogue": "failure_markers",
    "CatalogueFinding": "failure_markers",
    "HEADLESS": "failure_markers",
    "Marker": "failure_markers",
    "MarkerHit": "failure_markers",
    "Retry": "failure_markers",
    "SEARCH_SECONDS": "failure_markers",
    "entry_lines": "failure_markers",
    "entry_place": "failure_markers",
    "load_catalogue": "failure_markers",
    "parse_catalogue": "failure_markers",
    "read_catalogue": "failure_markers",
    "Alias": "metrics",
    "Metric": "metrics",
    "Registry": "metrics",
    "with_aliases": "metrics",
    "load_registry": "metrics",
    "data_root": "resources",
    "read_shipped": "resources",
    "Fail": "reading",
    "below": "reading",
    "failing": "reading",
    "listed": "reading",
    "Folder": "search_path",
    "LOCAL": "search_path",
    "find_folders": "search_path",
    "Path": "schema_check",
    "check_definition": "schema_check",
    "explain": "schema_check",
    "generated_validator": "schema_check",
    "json_type": "schema_check",
    "make_validator": "schema_check",
    "locate": "strict_yaml",
    "read_yaml": "strict_yaml",
    "MAX_TEXT": "units",
    "SPECIAL_UNITS": "units",
    "UNITS": "units",
    "find_factor": "units",
    "is_grouped": "units",
    "read_number": "units",
    "shift_of": "units",
    "split_suffix": "units",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
