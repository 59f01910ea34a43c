"""A foreign document → a valid receipt or evaluation, or a refusal with its exit code."""

import json
import tempfile
from pathlib import Path

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import ReceiptError
from receipt_cli.importers.importing import import_document
from receipt_cli.importers.text import JsonText, NotJson
from receipt_cli.receipts.production import InvalidReceipt
from tests.fuzz.feed import Feed, change
from tests.fuzz.harness import ROOT

_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
_FILES = sorted(path for path in (ROOT / "fixtures" / "foreign").rglob("*") if path.suffix in (".json", ".md"))
_OBJECTS = [path for path in _FILES if path.suffix == ".json" and "crashed" not in path.name]


def target(data: bytes) -> None:
    feed = Feed(data)
    beside = feed.below(2)
    if feed.below(2):
        document = json.loads(feed.pick(_OBJECTS).read_bytes())
        change(document, feed)
        text = json.dumps(document).encode()
    else:
        text = feed.rest()
    path = _FOLDER / "wandb-summary.json"
    path.write_bytes(text)
    for name in ("wandb-metadata.json", "config.yaml"):
        (_FOLDER / name).write_bytes(text if beside else b"")
    try:
        made = canonical_bytes(import_document(str(path)))
    except ReceiptError as error:
        assert not isinstance(error, InvalidReceipt) and error.exit_code in (3, 4), error.render()
    else:
        assert not has_errors(validate_bytes(made, "made"))
    _json(text)


def _json(text: bytes) -> None:
    """Hold the reader of JSON against Python's, which takes less (no NaN of other spellings, no cut arrays)."""
    try:
        decoded = text.decode("utf-8")
        stated = json.loads(decoded)
    except (ValueError, RecursionError):
        return
    if not isinstance(stated, dict):
        return
    try:
        JsonText(decoded).value()
    except NotJson as error:
        assert "deep" in str(error), error


def seeds() -> list[bytes]:
    whole = [bytes([beside, 0]) + path.read_bytes()[:4000] for path in _FILES for beside in (0, 1)]
    values = (b"null", b"true", b"-1", b"1e308", b'"NaN"', b"[[]]", b"{}", b"9" * 400, b'"cuda_oom"')
    changes = [
        bytes([0, 1, base, 1, 0, at, 0, at % 4, 3]) + value for base in range(len(_OBJECTS)) for at in (7, 30) for value in values
    ]
    return [*whole, *changes[::3]]
