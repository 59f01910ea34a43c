"""Exact copies of lines become empty, in whatever turns the processes print, and nothing else does."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.io.copied_lines import LOOKED_AT, NO_COPIES, CopiedLines, without_copies

RULE = b"-" * 40
BARS = [
    b"",
    *(b"%d%%" % (n // 40) for n in range(300)),
    b"loss 2.5",
    *(b"%d%%" % (n // 50) for n in range(200)),
    b"",
    b"loss 2.25",
]
"""Most of its lines come again by right."""
RUN = [b"begin", RULE, b"step  loss", RULE, *(b"%4d  %.3f" % (n, 9 - n / 50) for n in range(200)), RULE, b"done", RULE]


def in_turns(lines: list[bytes], size: int, heads: tuple[bytes, ...]) -> Iterator[bytes]:
    for at in range(0, len(lines), size):
        for head in heads:
            yield from (head + line for line in lines[at : at + size])


def text(lines: list[bytes] | Iterator[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def told(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line]


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_of_copies_one_stays_and_each_line_keeps_its_number(count: int, size: int) -> None:
    whole = text(in_turns(RUN, size, (b"",) * count))
    found, copies = without_copies(whole)
    assert told(found) == RUN
    assert copies.duplicate_of == {}
    assert len(copies.lines) == (count - 1) * len(RUN)
    assert found.count(b"\n") == whole.count(b"\n")
    assert all(one in (b"", other) for one, other in zip(found.split(b"\n"), whole.split(b"\n"), strict=True))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("size", [3, 7, 40])
def test_copies_in_equal_turns_may_repeat_themselves(count: int, size: int) -> None:
    found, copies = without_copies(text(in_turns(BARS, size, (b"",) * count)))
    assert told(found) == [line for line in BARS if line]
    assert len(copies.lines) == (count - 1) * len(told(text(BARS)))


@pytest.mark.parametrize("size", [1, 7, 40, 1000])
def test_of_equal_ranks_the_lowest_stays(size: int) -> None:
    found, copies = without_copies(text([b"launcher", *in_turns(RUN, size, (b"[rank3]: ", b"[rank1]: "))]))
    assert told(found) == [b"launcher", *(b"[rank1]: " + line for line in RUN)]
    assert copies.duplicate_of == {3: 1}


OTHER = [line.replace(b"7", b"8") for line in RUN]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(RUN, id="one"),
        pytest.param([*RUN, *RUN], id="appended to itself"),
        pytest.param([*RUN, *RUN, *RUN, *RUN], id="appended thrice"),
        pytest.param([*in_turns(RUN, 7, (b"", b"")), b"another"], id="a line more"),
        pytest.param([line for pair in zip(RUN, OTHER, strict=True) for line in pair], id="others"),
        pytest.param([b"loss: nan"] * 8, id="one line"),
        pytest.param([b"[rank%d]: %b" % (n % 2, line) for n, line in enumerate(RUN)], id="ranks in turn"),
        pytest.param(
            [*(b"[rank0]: " + line for line in RUN), *(b"[rank1]: " + line for line in RUN[:-1])], id="a rank that ends"
        ),
        pytest.param([*RUN[:99], *RUN[:60], *RUN[60:]], id="a restart"),
    ],
)
def test_what_is_no_copy_stays_as_it_is(lines: list[bytes]) -> None:
    assert without_copies(text(lines)) == (text(lines), NO_COPIES)


def test_a_log_of_copies_that_was_appended_to_itself_has_its_copies_twice() -> None:
    found, _ = without_copies(text(in_turns([*RUN, *RUN], 1, (b"", b""))))
    assert told(found) == [*RUN, *RUN]


@given(
    st.lists(st.integers(0, 9000), max_size=6),
    st.sampled_from([1, 7, 40]),
    st.sampled_from([(b"", b""), (b"0: ", b"1: "), (b"",)]),
)
def test_bytes_may_arrive_in_any_pieces(cuts: list[int], size: int, heads: tuple[bytes, ...]) -> None:
    whole = text(in_turns([*RUN, *(b"%d more" % n for n in range(LOOKED_AT))], size, heads))
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    copied = CopiedLines()
    pieces = [copied.feed(whole[one:other]) for one, other in pairwise(places)]
    twice = copied.rest()
    end, copies = copied.rest(b"")
    assert twice == (end, copies)
    assert (b"".join(pieces) + end, copies) == without_copies(whole)


def test_a_log_that_shows_no_copies_is_not_kept() -> None:
    copied = CopiedLines()
    assert copied.feed(text(b"line %d" % n for n in range(LOOKED_AT)))
    assert copied.kept_lines == 0
    assert copied.feed(b"x\n") == b"x\n"
