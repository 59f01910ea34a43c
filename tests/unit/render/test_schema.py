"""Fields of a schema, and changes between two, in the terminal."""

from receipt_cli.documents.schema_fields import Change, Field
from receipt_cli.render.schema import render_changes, render_fields
from receipt_cli.render.style import Style

STYLE = Style(width=80)


def test_a_field_has_its_type_unit_and_description() -> None:
    kind = Field("/kind", ("string",), True, "", {"enum": ["a", "b"]})
    fields = [Field("/time_s", ("number",), False, "How long it took."), kind]
    lines = render_fields(fields, STYLE).splitlines()
    assert lines[0].split()[:2] == ["/time_s", "number"] and lines[0].endswith(", optional")
    assert lines[1] == "    How long it took."
    assert lines[-1] == "    one of a, b"


def test_changes_begin_with_the_verdict() -> None:
    added = Change("/a", "added", "field", None, "string", True)
    removed = Change("/b", "removed", "field", "string", None, False)
    assert render_changes("x/1.0", "x/1.1", [], STYLE) == "x/1.0 and x/1.1 hold the same fields\n"
    assert render_changes("x/1.0", "x/1.1", [added], STYLE).startswith("compatible: ")
    page = render_changes("x/1.0", "x/2.0", [added, removed], STYLE)
    assert page.startswith("not compatible: ")
    assert page.endswith("2 changes, 1 of them not allowed in a minor version\n")
