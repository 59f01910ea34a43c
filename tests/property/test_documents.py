"""Whatever has happened to a document of any kind: it is judged, shown in lines that fit, and lifted or refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.documents.migrate import migrate
from receipt_cli.documents.validate import has_errors, validate_document
from receipt_cli.errors import ReceiptError
from receipt_cli.render.document import render_document
from receipt_cli.render.terminal.style import Style
from receipt_cli.render.terminal.text import cells

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "fixtures" / "receipts").glob("*/valid/*.json"))
DOCUMENTS = [json.loads(path.read_bytes()) for path in EXAMPLES]
SIZES = [0, 1, -1, 3.0, 0.5, -0.0, 5e-324, 1e308, -1e308, 10**308, -(10**308), 2**63]
WORDS = ["", "0", "log:1", "import:/a", "import:x#/a", "import/1", "\x1b[2J", "日本語", "a\nb", "x" * 3000]
NUMBERS = st.sampled_from(SIZES) | st.integers() | st.floats()
VALUES = st.none() | st.booleans() | NUMBERS | st.sampled_from(WORDS) | st.text(max_size=8)
HOWS = st.sampled_from(["set", "drop", "double", "rename"])
CHANGES = st.lists(st.tuples(st.integers(0, 10**6), VALUES, HOWS), min_size=1, max_size=6)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([path] if path else []), *(found for key, item in items for found in leaves(item, (*path, key)))]


def change(document: dict[str, Any], place: int, value: Any, how: str) -> None:
    """Set, drop, double or rename one value; a number mostly stays a number, so that the rules behind the schema are met."""
    places = leaves(document)
    *path, last = places[place % len(places)]
    parent: Any = document
    for key in path:
        parent = parent[key]
    old = parent[last]
    if how == "drop" and len(places) > 1:
        del parent[last]
    elif how == "double" and isinstance(old, list | str):
        parent[last] = old + old
    elif how == "rename" and isinstance(parent, dict):
        parent[str(value)] = parent.pop(last)
    elif isinstance(old, int | float) and not isinstance(value, int | float):
        parent[last] = -old
    else:
        parent[last] = value


@settings(max_examples=250)
@given(st.sampled_from(DOCUMENTS), CHANGES, st.sampled_from([40, 100]))
def test_a_changed_document_is_judged_shown_and_lifted_or_refused(
    base: Any, changes: list[tuple[int, Any, str]], width: int
) -> None:
    document = copy.deepcopy(base)
    for place, value, how in changes:
        change(document, place, value, how)
    document["schema_version"] = base["schema_version"]
    findings = validate_document(document)
    assert all(finding.reason and (not finding.pointer or finding.pointer.startswith("/")) for finding in findings)
    shown = render_document(document, style=Style(width=width, color=False, unicode=True))
    assert "\x1b" not in shown
    assert all(cells(line) <= width for line in shown.split("\n"))
    try:
        made = migrate(document).document
    except ReceiptError as error:
        assert error.exit_code == 5
    else:
        assert has_errors(validate_document(made)) or not has_errors(findings)
