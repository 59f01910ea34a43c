"""Lines of a log that was read before are read from a place near them, and are the same."""

import hashlib
import json
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.io import encoding, source
from receipt_cli.io.source import Source
from receipt_cli.scan.presence import load_kernel
from tests.tools.examples import costly

BLOCK = 128
STEP = b"step %d: loss 2.%02d"


def docker(number: int) -> bytes:
    return json.dumps({"log": f"step {number}: loss 2.5\n", "stream": "stdout", "time": "2026-03-01T10:00:00Z"}).encode()


def part(number: int) -> bytes:
    return b"2026-03-01T10:00:00.000000001Z stdout %b step %d" % (b"F" if number % 3 == 0 else b"P", number)


LINES = {
    "plain": lambda number: STEP % (number, number % 100),
    "docker": docker,
    "cut": part,
    "ts -s": lambda number: b"%d.123456 step %d: loss 2.5 of" % (number, number),
    "accents": lambda number: "é %d: perte 2,5".encode() % number,
    "long": lambda number: b"x" * (number % 7 * 100),
    "empty": lambda number: b"",
    "redrawn": lambda number: b"step %d\rstep %d" % (number, number + 1),
}


def read(log: Source) -> tuple[list[bytes], list[int]]:
    lines = b"".join(log.blocks()).split(b"\n")
    within = range(log.lines_before + 1, log.lines_before + len(lines))  # what is behind may be read ahead
    return lines, [number for number in log.empty_lines if number in within]


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    kinds = draw(st.lists(st.sampled_from(sorted(LINES)), min_size=1, max_size=4))
    count = draw(st.integers(20, 200))
    once = b"\n".join(LINES[kinds[number * len(kinds) // count]](number) for number in range(count)) + draw(
        st.sampled_from([b"", b"\n"])
    )
    return once * draw(st.sampled_from([1, 1, 2]))


@pytest.mark.parametrize("native", [False, True])
@settings(max_examples=costly(150))
@given(text=texts(), data=st.data())
def test_lines_from_a_mark_are_those_from_the_beginning(
    tmp_path_factory: pytest.TempPathFactory, native: bool, text: bytes, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("marks") / "run.log"
    path.write_bytes(text)
    small = [(source, "BLOCK", BLOCK), (source, "DIRECT", 4 * BLOCK), (encoding, "SAMPLE", BLOCK)]
    with ExitStack() as patched:
        for module, name, size in (*small, (source, "MOST", data.draw(st.sampled_from([4, 1024])))):
            patched.enter_context(patch.object(module, name, size))
        log = Source(str(path))
        log.native = load_kernel() if native else None
        lines = read(log)[0]
        for _ in range(3):
            before = data.draw(st.integers(0, len(lines) + 2))
            end = data.draw(st.none() | st.integers(before, len(lines) + 2))
            near = log.excerpt(before, end)
            whole = Source(str(path))
            whole.report_copies(log.copies)
            far = whole.excerpt(before, end)
            whole.close()
            assert near is not None and far is not None
            found = read(near)
            assert found == read(far)
            wanted = lines[before:end]
            assert (found[0][: len(wanted)], b"".join(found[0][len(wanted) :])) == (wanted, b"")
            if end is None:
                assert (near.sha256, near.size_bytes) == (log.sha256, log.size_bytes)
            again = near.reopen()
            assert again is not None and read(again) == found


def test_what_is_before_the_lines_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    text = b"".join(STEP % (number, number % 100) + b"\n" for number in range(300_000))
    path.write_bytes(text)
    log = Source(str(path))
    assert b"".join(log.blocks()) == text
    with path.open("r+b") as file:
        file.write(b"another log\n" * 8)
    near = log.excerpt(299_998)
    assert b"".join(near.blocks()) == b"".join(text.splitlines(keepends=True)[-2:])
    assert near.sha256 == log.sha256 == hashlib.sha256(text).hexdigest()


def test_of_a_text_in_another_encoding_all_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    text = "".join(f"schritt {number}: verlust 2,5 für größe\n" for number in range(100_000))
    path.write_bytes(text.encode("utf-16"))
    log = Source(str(path))
    assert b"".join(log.blocks()) == text.encode()
    near = log.excerpt(99_999)
    assert b"".join(near.blocks()).decode() == text.splitlines(keepends=True)[-1]
    assert [problem.kind for problem in near.problems] == ["decoded_as"]
