"""Whatever the bytes: an error of ours or a valid receipt, whose lines add up and whose bytes open again."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.metamorphic.pairs import without_places
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import validate_document
from receipt_cli.errors import ReceiptError
from receipt_cli.io.file_kinds import recognise
from receipt_cli.receipts.production import Product, Request, produce
from tests.tools.examples import costly

FIXTURES = sorted((Path(__file__).resolve().parents[2] / "fixtures" / "logs").glob("*/*.log"))
LINES = sorted({line for path in FIXTURES for line in path.read_bytes().split(b"\n") if b"loss" in line or b"rror" in line})[::7]
NOISE = [
    b"",
    b"   ",
    b"some text",
    b"2026-01-01 00:00:00 INFO nothing to see",
    b"\xff\xfe\x00",
    b"a" * 3000,
    b"\x1b[31mred\x1b[0m",
]
pieces = st.sampled_from(LINES) | st.sampled_from(NOISE) | st.binary(max_size=40)
logs = st.lists(pieces, min_size=1, max_size=30).map(b"\n".join)


def made(log: bytes, **options: object) -> Product:
    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        file.write(log)
        file.flush()
        return produce(Request(path=file.name, **options))  # type: ignore[arg-type]


@settings(max_examples=costly(150))
@given(logs, st.sampled_from([None, 0, 1, 137]))
def test_any_bytes_give_a_valid_receipt_or_an_error_of_ours(log: bytes, exit_code: int | None) -> None:
    try:
        product = made(log, exit_code=exit_code)
    except ReceiptError:
        packed = log.startswith((b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ"))
        assert not log or packed or recognise(log) is not None  # empty, half an archive, or a file of another kind
        return
    document = product.document
    assert [f for f in validate_document(document) if f.severity == "error"] == []
    derivation = document["derivation"]
    assert sum(derivation["lines"].values()) == derivation["log"]["record_count"]
    data = canonical_bytes(document)
    assert canonical_bytes(json.loads(data)) == data
    assert json.loads(data) == document


@settings(max_examples=costly(60))
@given(
    st.sampled_from(FIXTURES),
    st.lists(
        st.tuples(st.integers(0, 10_000), st.sampled_from([n for n in NOISE if n.isascii() and b"\x1b" not in n])), max_size=6
    ),
)
def test_lines_that_nothing_matches_change_no_figure(path: Path, extra: list[tuple[int, bytes]]) -> None:
    lines = path.read_bytes().split(b"\n")
    for place, line in extra:
        lines.insert(place % len(lines), line)
    want, got = made(path.read_bytes()).document, made(b"\n".join(lines)).document
    for summary in (one for made_of in (want, got) for one in (made_of["summary"], *(p["summary"] for p in made_of["phases"]))):
        if summary is not None:
            summary.pop("time", None)  # the first and the last stamp of the log, whatever its line is about
    for part in ("summary", "phases", "checks"):
        assert without_places(got[part]) == without_places(want[part])
    assert (got["failure"] or {}).get("reason") == (want["failure"] or {}).get("reason")
