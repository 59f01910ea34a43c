"""Raw bytes become records: ends, redraws, terminal noise, the cap; and lines as a terminal would leave them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.records.envelope import plain
from receipt_cli.records.split import (
    RECORD_CAP,
    Fragment,
    count_blank,
    display_lines,
    first_end,
    last_end,
    may_spell,
    normalise,
    without_marks,
)
from receipt_cli.scan.presence import load_kernel

NATIVE = load_kernel()
NORMALISED = [
    ("newline", b"a\nb\n", b"a\nb\n"),
    ("crlf", b"a\r\nb\r\n", b"a\nb\n"),
    ("lone carriage return", b"a\rb\n", b"a\rb\n"),
    ("mixed", b"a\r\nb\rc\n", b"a\nb\rc\n"),
    ("nul", b"l\x00oss\x00 1\n", b"loss 1\n"),
    ("colour", b"\x1b[1;31mloss\x1b[0m 1\n", b"loss 1\n"),
    ("erase and cursor", b"\x1b[2K\x1b[1A\x1b[?25lloss 1\x1b[K\n", b"loss 1\n"),
    ("colon parameters", b"\x1b[38:5:196mloss\n", b"loss\n"),
    ("title, bell", b"\x1b]0;title\x07loss\n", b"loss\n"),
    ("title, string terminator", b"\x1b]0;title\x1b\\loss\n", b"loss\n"),
    ("hyperlink", b"\x1b]8;;https://x.org\x1b\\text\x1b]8;;\x1b\\ loss\n", b"text loss\n"),
    ("device control", b"\x1bPq#0\x1b\\loss\n", b"loss\n"),
    ("character set", b"\x1b(Bloss\n", b"loss\n"),
    ("unterminated title keeps the next line", b"\x1b]0;title\nloss 1\n", b"\nloss 1\n"),
    ("echoed arrow", b"lo^[[Bss 1\n", b"loss 1\n"),
    ("echoed keys", b"^[[A^[[1;5C^[[3~^[OPloss\n", b"loss\n"),
    ("a caret is text", b"2^[x] loss\n", b"2^[x] loss\n"),
    ("backspaces redraw", b"10%\b\b\b20%\n", b"10%\r20%\n"),
    ("backspaces before the place that ends a bar", b"[=>.] Loss: 2.1    \b\b\b 3/90 \n", b"[=>.] Loss: 2.1      3/90 \n"),
    ("invalid UTF-8 survives", b"\xff\xfeloss \xc3\n", b"\xff\xfeloss \xc3\n"),
    ("empty", b"", b""),
]


@pytest.mark.parametrize(("raw", "want"), [row[1:] for row in NORMALISED], ids=[row[0] for row in NORMALISED])
def test_normalise(raw: bytes, want: bytes) -> None:
    assert normalise(raw) == want


@pytest.mark.skipif(NATIVE is None, reason="there is no compiled kernel")
@pytest.mark.parametrize(("raw", "want"), [row[1:] for row in NORMALISED], ids=[row[0] for row in NORMALISED])
def test_normalise_of_the_kernel(raw: bytes, want: bytes) -> None:
    assert NATIVE is not None and NATIVE.plain(raw) == want


NOISE = st.lists(
    st.sampled_from([b"a", b" ", b"\n", b"\r", b"\r\n", b"\x00", b"\b", b"\x1b", b"\x1b[31m", b"\x1b]0;t", b"^[[B", b"[", b"]", b"\x07", b"\xff", b"\\", b"P", b";", b"(", b"/", b"\x1b_bk;t=17000000", b"00123", b"7\x07"])  # noqa: E501
).map(b"".join)  # fmt: skip


@pytest.mark.skipif(NATIVE is None, reason="there is no compiled kernel")
@given(NOISE)
def test_the_kernel_leaves_the_same(raw: bytes) -> None:
    assert NATIVE is not None and NATIVE.plain(raw) == plain(raw)


SIGNS = st.lists(
    st.sampled_from([b"n", b"N", b"a", b"A", b"nan", b"NaN", b"NAN", b"inf", b"Inf", b"infinity", b"I", b"f", b"+", b"-", b"(", b")", b".", b"#", b"#IND", b"1.#QNAN", b" ", b"config", b"0", b"\xff", b"x" * 15])  # noqa: E501
).map(b"".join)  # fmt: skip


@pytest.mark.skipif(NATIVE is None, reason="there is no compiled kernel")
@given(SIGNS)
def test_the_kernel_finds_the_same_spellings(raw: bytes) -> None:
    assert NATIVE is not None and NATIVE.spells(raw) == may_spell(raw)


BLANK = [
    (b"", 0),
    (b"a\n", 0),
    (b"\n", 1),
    (b"\n\n\n", 3),
    (b"a\n\nb\n", 1),
    (b"a\n \t \nb\n", 1),
    (b"a\r\rb\n", 1),
    (b"a\n\r", 1),
    (b" a \n", 0),
]


@pytest.mark.parametrize(("records", "want"), BLANK)
def test_blank_records(records: bytes, want: int) -> None:
    assert count_blank(records) == want


@given(NOISE)
def test_blank_records_are_those_that_hold_nothing(raw: bytes) -> None:
    records = normalise(raw + b"\n")
    want = sum(1 for record in re.split(rb"[\n\r]", records)[:-1] if not record.strip(b" \t"))
    assert count_blank(records) == want


DISPLAYED = [
    (b"a\nb\n", 9, ["a", "b"]),
    (b"a\nb", 9, ["a", "b"]),
    (b"a\nb\nc\n", 2, ["b", "c"]),
    (b"10%\r50%\r100%\ndone\n", 9, ["100%", "done"]),
    (b"10%\r50%\r\n", 9, ["50%"]),
    (b"10%\r50%\r   \n", 9, ["50%"]),
    (b"\x1b[31mred\x1b[0m  \n", 9, ["red"]),
    (b"a\n\nb\n\n\n", 9, ["a", "", "b"]),
    (b"\n\n", 9, []),
    (b"", 9, []),
    (b"\xff ok\n", 9, ["� ok"]),
    (b"5\b\b6\n", 9, ["6"]),
]


@pytest.mark.parametrize(("raw", "limit", "want"), DISPLAYED)
def test_display_lines(raw: bytes, limit: int, want: list[str]) -> None:
    assert display_lines(raw, limit) == want


ENDS = [
    (b"a\nb\n", 2, 4),
    (b"a\r\nb", 3, 3),
    (b"a\rb\n", 2, 4),
    (b"a\rb\r", 2, 2),
    (b"\n", 1, 1),
]


@pytest.mark.parametrize(("raw", "first", "last"), ENDS)
def test_record_ends(raw: bytes, first: int, last: int) -> None:
    assert (first_end(raw), last_end(raw)) == (first, last)


def test_no_certain_end() -> None:
    assert [last_end(raw) for raw in (b"", b"abc", b"abc\r")] == [0, 0, 0]


def test_a_fragment_grows_to_the_cap() -> None:
    fragment = Fragment()
    assert fragment.empty
    fragment.extend(b"a" * (RECORD_CAP - 1))
    fragment.extend(b"bcd")
    assert (len(fragment.data), fragment.length, fragment.data[-2:]) == (RECORD_CAP, RECORD_CAP + 2, b"ab")
    fragment.extend(b"\r")
    assert fragment.carriage and fragment.length == RECORD_CAP + 2
    ended = Fragment()
    ended.extend(b"\r")
    assert not ended.empty and ended.length == 0


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (b"step 3 | * loss 0.5\n", b"step 3 | loss 0.5\n"),
        (b"step 3, lr 0.1, ! loss 0.5\n", b"step 3, lr 0.1, loss 0.5\n"),
        (b"trainer-0  | * number of parameters: 5\n", b"trainer-0  | * number of parameters: 5\n"),  # the service's own line
        (b"step 3 | * loss 0.5\rtrainer | * loss 0.5\n", b"step 3 | loss 0.5\rtrainer | * loss 0.5\n"),
    ],
)
def test_a_mark_before_a_label_is_left_out(raw: bytes, read: bytes) -> None:
    assert without_marks(raw) == read
