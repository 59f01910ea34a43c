"""Variables, a blob and a header file of any text: a header that is valid, or a refusal that quotes nothing."""

import json
import re
import tempfile
from pathlib import Path

from receipt_cli.documents.validate import has_errors, validate_document
from receipt_cli.errors import ReceiptError
from receipt_cli.header.collect import collect_header
from receipt_cli.header.header_file import BLOB_VARIABLE, GIT_VARIABLES, header_document, read_header_file
from receipt_cli.redaction.text import mask_texts
from tests.fuzz.feed import Feed
from tests.fuzz.harness import ROOT

_FILE = Path(tempfile.mkdtemp(prefix="fuzz-")) / "header.json"
_SECRET = "hf_aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"

_SHOWN = re.compile(rf"(?<!\w){_SECRET}")
"""As part of a longer word it is no token."""


def target(data: bytes) -> None:
    feed = Feed(data)
    where = feed.below(2 + len(GIT_VARIABLES))
    raw = feed.rest()
    environ: dict[str, str] = {}
    captured = None
    try:
        if where == 0:
            _FILE.write_bytes(raw)
            captured = read_header_file(_FILE)
        else:
            name = BLOB_VARIABLE if where == 1 else list(GIT_VARIABLES)[where - 2]
            environ[name] = raw.decode("utf-8", "surrogateescape").replace("\0", "")
        header, notes = collect_header(environ=environ, header_file=captured, log_facts=(), here=None, now=None)
    except ReceiptError as error:
        assert _SECRET not in error.render()
        assert error.exit_code in (2, 3)
        return
    run = dict(captured["run"]) if captured is not None else {}
    document = header_document(run, mask_texts(header))
    found = validate_document(document)
    assert not has_errors(found), found
    assert not _SHOWN.search(json.dumps(document)) and all(_SECRET not in note for note in notes)


def seeds() -> list[bytes]:
    files = sorted((ROOT / "fixtures" / "receipts" / "header-1.0").glob("*/*.json"))
    whole = [path.read_bytes() for path in files]
    blobs = [json.dumps(json.loads(text)["header"]).encode() for text in whole if b'"header": {' in text]
    blobs += [
        b'{"commit": "0123abcd", "dirty": false}',
        b'{"git": {"message": "' + _SECRET.encode() + b'"}}',
        b'{"seeds": {"a": 1}, "flags": {"b": "x"}}',
    ]
    values = (b"0123abcd", b"main", b"yes", _SECRET.encode(), b"fix\nthe rest", b"\xff", b"\xe2\x80\xae")
    return (
        [b"\0" + text for text in whole]
        + [b"\1" + text for text in blobs]
        + [bytes([n]) + v for n in (2, 3, 4, 5) for v in values]
    )
