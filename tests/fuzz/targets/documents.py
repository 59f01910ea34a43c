"""A document that somebody sent: judged, shown in lines that fit and without terminal codes, lifted or refused."""

import json

from rich.cells import cell_len as cells

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.diff import differences
from receipt_cli.documents.migrate import migrate
from receipt_cli.documents.validate import has_errors, validate_bytes, validate_document
from receipt_cli.errors import ReceiptError
from receipt_cli.render.document import render_document
from receipt_cli.render.style import Style
from tests.fuzz.feed import Feed, change
from tests.fuzz.harness import ROOT

_EXAMPLES = sorted((ROOT / "fixtures" / "receipts").glob("*/*/*.json"))
_BASES = [json.loads(path.read_bytes()) for path in _EXAMPLES if path.parent.name == "valid"]


def target(data: bytes) -> None:
    feed = Feed(data)
    if feed.below(2):
        document = json.loads(json.dumps(feed.pick(_BASES)))
        change(document, feed)
        text = json.dumps(document).encode()
    else:
        text = feed.rest()
    try:
        findings = validate_bytes(text, "sent")
    except ReceiptError as error:
        assert error.exit_code in (3, 5), error.render()
        return
    assert all(finding.reason and (not finding.pointer or finding.pointer.startswith("/")) for finding in findings)
    document = json.loads(text)
    if not isinstance(document, dict):
        return
    width = 40 + len(text) % 61
    shown = render_document(document, style=Style(width=width, color=False, unicode=True))
    assert all(cells(line) <= width for line in shown.split("\n"))
    assert not any((ord(letter) < 32 and letter != "\n") or 0x7F <= ord(letter) < 0xA0 for letter in shown)
    if has_errors(findings):
        return
    assert differences(document, document) == []
    try:
        made = migrate(document).document
    except ReceiptError as error:
        assert error.exit_code == 5, error.render()  # of a newer minor version
        return
    assert not has_errors(validate_document(made))
    assert json.loads(canonical_bytes(made)) == made


def seeds() -> list[bytes]:
    whole = [b"\0" + json.dumps(json.loads(path.read_bytes()), separators=(",", ":")).encode() for path in _EXAMPLES[::3]]
    values = (b"1", b"-1", b"null", b"1e308", b'"\\u001b[2J"', b"[]", b"{}", b"0.5", b"true", b'"<script>"', b"9" * 400)
    changes = [
        bytes([1, base, 0, at >> 8, at & 255, 3]) + value
        for base in range(len(_BASES))
        for at in (5, 90, 300)
        for value in values
    ]
    return [*whole, *changes[::3], b"\0[]", b"\0{}", b'\0{"schema_version": "receipt/1.0"}', b"\0" + b'{"a":' * 2000]
