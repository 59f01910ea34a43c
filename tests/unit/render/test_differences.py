"""Differences between documents, schemas and receipts, verification and dry runs in the terminal."""

from dataclasses import replace

from receipt_cli.documents.diff import differences
from receipt_cli.documents.schema_fields import Change, Field
from receipt_cli.render.console import Page
from receipt_cli.render.differences import (
    MOST,
    Title,
    count_kinds,
    render_change,
    render_quarantine,
    render_summary,
    render_verification,
    write_differences,
)
from receipt_cli.render.schema import render_changes, render_fields
from receipt_cli.render.style import Style

STYLE = Style(width=100)
OLD = {"summary": {"loss": 1.0}, "phases": [{"summary": {"loss": 1.0}}], "gone": 2}
NEW = {"summary": {"loss": 1.5}, "phases": [{"summary": {"loss": 1.5}}], "new": "x"}


def test_a_phase_that_repeats_the_summary_is_counted() -> None:
    page = Page(STYLE)
    write_differences(page, differences(OLD, NEW))
    lines = page.text().splitlines()
    assert [line.split() for line in lines[2:5]] == [
        ["~", "/summary/loss", "1.0", "1.5"], ["+", "/new", "–", '"x"'], ["-", "/gone", "2", "–"]
    ]  # fmt: skip
    assert lines[5].strip() == "1 of the same in the primary phase: /phases"


def test_no_more_than_most_are_shown() -> None:
    page = Page(STYLE)
    write_differences(page, differences({}, {f"field{n}": n for n in range(MOST + 2)}))
    assert "… and 2 more: --json lists them all" in page.text()


def test_kinds_in_words() -> None:
    assert count_kinds(["lost", "gained", "lost"]) == "1 gained, 2 lost"
    assert count_kinds([]) == "nothing differs"


def test_a_verified_receipt_is_one_line() -> None:
    title = Title("a/run.receipt.json", "run.log", ["toy@v1"], newest=False)
    invalid = render_verification([], [], ["/run: wrong"], title, STYLE).splitlines()
    assert invalid[0].split("  ")[0] == "not verified: the receipt is not valid"
    assert render_verification([], [], [], title, STYLE) == "verified: run.receipt.json is what run.log gives  toy@v1\n"


def test_the_release_that_verifies_a_receipt() -> None:
    title = Title("run.receipt.json", "run.log", ["toy@v1"], newest=False, made_by="1.0.0rc1")
    words = "- the receipt was written by receipt 1.0.0rc1, which verifies it: receipt-cli==1.0.0rc1"
    found = list(differences(OLD, NEW))
    pages = {other: render_verification(found, [other], [], title, STYLE) for other in ("rules", "markers", "log")}
    assert {other: words in " ".join(page.split()) for other, page in pages.items()} == {
        "rules": True, "markers": True, "log": False
    }  # fmt: skip
    generic = [render_verification(found, ["grammar"], [], replace(title, refs=[ref]), STYLE) for ref in ("toy@v1", "generic@v2")]
    assert [words in " ".join(page.split()) for page in generic] == [False, True]


def test_a_batch_in_words() -> None:
    page = render_summary("store", {"written": 2, "unchanged": 0}, 2, 2_000_000, 4.0, STYLE, unrecognised=1)
    assert page.splitlines()[1:] == [
        "2 logs derived (1.907 MiB) in 4.00 s: 0.500 logs/s, 0.500 MB/s", "  written  2",
        "  1 of the receipts are of logs that no grammar recognises",
    ]  # fmt: skip
    assert "would be replaced: 1 gained" in render_change("a.log", "replaced", differences({}, {"a": 1}), STYLE)
    assert "would be written: a first receipt" in render_change("a.log", "written", [], STYLE)
    assert render_quarantine([], 0, STYLE) == ""
    page = render_quarantine([("a.log", "empty")], 2, STYLE, "receipt store quarantine")
    assert "… and 1 more: receipt store quarantine" in page


NARROW = Style(width=80)


def test_a_field_has_its_type_unit_and_description() -> None:
    kind = Field("/kind", ("string",), True, "", {"enum": ["a", "b"]})
    fields = [Field("/time_s", ("number",), False, "How long it took."), kind]
    lines = render_fields(fields, NARROW).splitlines()
    assert lines[0].split()[:2] == ["/time_s", "number"] and lines[0].endswith(", optional")
    assert lines[1] == "    How long it took."
    assert lines[-1] == "    one of a, b"


def test_changes_begin_with_the_verdict() -> None:
    added = Change("/a", "added", "field", None, "string", True)
    removed = Change("/b", "removed", "field", "string", None, False)
    assert render_changes("x/1.0", "x/1.1", [], NARROW) == "x/1.0 and x/1.1 hold the same fields\n"
    assert render_changes("x/1.0", "x/1.1", [added], NARROW).startswith("compatible: ")
    page = render_changes("x/1.0", "x/2.0", [added, removed], NARROW)
    assert page.startswith("not compatible: ")
    assert page.endswith("2 changes, 1 of them not allowed in a minor version\n")
