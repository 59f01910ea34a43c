"""Whatever the bytes: an error of ours or a valid receipt, whose lines add up and whose bytes open again."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.metamorphic.pairs import without_places
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
