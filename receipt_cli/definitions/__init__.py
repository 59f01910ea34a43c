"""Load the data that ships: metrics, failure markers, accelerators, units.

In: YAML in ``grammars/`` and ``schemas/``, or its compiled form. Out: frozen tables; a broken file raises ``DataError``.
Start with ``metrics`` (the registry), ``resources`` (where the files are).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "accelerators": "Device load_peaks",
    "compiled": "find_compiled load_shipped pack unpack",
    "failure_markers": (
        "Catalogue HEADLESS MANY_PROCESSES MARKERS_PATH Marker MarkerHit SEARCH_SECONDS load_catalogue parse_catalogue "
        "read_catalogue"
    ),
    "metrics": "Alias Metric Registry with_aliases load_registry",
    "resources": "data_root is_installed read_shipped",
    "reading": "Fail below failing listed similar",
    "search_path": "Folder LOCAL distrusted find_folders upwards",
    "schema_check": "Path check_definition explain json_type make_validator refuse",
    "strict_yaml": "locate read_yaml write_yaml",
    "units": "MAX_TEXT SPECIAL_UNITS UNITS find_factor is_grouped known_units read_number shift_of split_suffix",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
