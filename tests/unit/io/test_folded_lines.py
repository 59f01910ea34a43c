"""Lines that were cut at a width are joined, wherever the stream is cut; lines of one width that are whole stay."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.io.folded_lines import LOOKED_AT, FoldedLines, find_fold
from receipt_cli.io.source import Source

HEAD = [f"argument {n}: {'value, ' * n}and a word longer than the width of the lines would be {'x' * n}" for n in range(3, 12)]
HEAD = ["start of train.py", *HEAD, "training begins"]
STEPS = [
    f"step {n} of 400, train loss={9 / (n + 1):.6f} learning_rate={n * 1e-4:.3e} grad_norm={n % 7 + 0.5} tokens/s={31000 + n} ok"
    for n in range(60)
]
FIXED = [f"epoch {n:03} | loss {9 - n / 50:.4f} | accuracy {n / 100:.4f} | lr 0.0010 | 12.3 s" for n in range(60)]
PAIRS = [
    line
    for n in range(30)
    for line in (f"Train | loss {9 - n / 50:.4f} | accuracy {n / 100:.5f}", f"Val | loss {8 - n / 50:.4f}")
]
ROWS = [
    "layer          output shape      params",
    *(f"{name:<15}(32, {n:>3})        {n * 97:>5}" for n, name in enumerate("abcdefgh", 90)),
]


DIGITS = [
    f"{n},{(9 + n) / 71:.{13 if n % 9 == 4 else 17}f},{3 + n / 70:.16f},{4 + n / 90:.16f},{4 + n / 9:.16f}"[: 72 - (n % 9 == 7)]
    for n in range(60)
]


def text(lines: list[str], end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


def cut(lines: list[str], width: int) -> list[str]:
    return [line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)]


def joined(pieces: list[bytes]) -> tuple[bytes, list[int]]:
    lines = FoldedLines()
    made = b"".join(map(lines.feed, pieces))
    rest, done = lines.rest()
    return made + rest, list(done.emptied)


def told(data: bytes) -> list[str]:
    return [line for line in data.decode().replace("\r", "").split("\n") if line]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("width", [66, 72, 80])
def test_cut_lines_are_joined_and_each_line_keeps_its_number(width: int, end: str) -> None:
    parts = cut([*HEAD, *STEPS], width)
    found, emptied = joined([text(parts, end)])
    assert told(found) == [*HEAD, *STEPS]
    lines = found.split(b"\n")
    assert len(lines) == len(parts) + 1
    assert [number for number, line in enumerate(lines[:-1], 1) if not line] == emptied
    assert len(emptied) == len(parts) - len(HEAD) - len(STEPS)


@pytest.mark.parametrize(
    "head", ["2026-05-06T07:08:09.{:09}Z stdout F ", "[default0]:", "0: ", "2026-05-06 07:08:09,{:03} - train - INFO - "]
)
@pytest.mark.parametrize("width", [66, 80])
def test_lines_that_were_cut_before_a_collector_put_heads_on_them_are_joined(width: int, head: str) -> None:
    whole = [*HEAD, *STEPS]
    lines = [head.format(number) + part for number, part in enumerate(cut(whole, width))]
    found, emptied = joined([text(lines)])
    assert len(emptied) == len(lines) - len(whole)
    assert [line[len(head.format(0)) :] for line in told(found)] == whole
    spread = [line for part in lines for line in (part, "")]  # a collector's parts of one line leave empty ones
    assert told(joined([text(spread)])[0]) == told(found)


@pytest.mark.parametrize("width", range(50, 60))
def test_of_one_kind_of_record_numbers_are_joined(width: int) -> None:
    """The same words are cut in every record, which proves nothing; a number that goes on in the next line does."""
    found = told(joined([text([*HEAD[:1], *cut(FIXED, width)])])[0])
    assert found in ([*HEAD[:1], *FIXED], [*HEAD[:1], *cut(FIXED, width)])
    if FIXED[0][width - 1].isdigit() and FIXED[0][width] in ".0123456789":
        assert found[1:] == FIXED


@pytest.mark.parametrize(
    "lines", [FIXED, PAIRS, ROWS, DIGITS, ["=" * 60, *PAIRS, "=" * 60] * 9, [f"0: {line}" for line in FIXED]]
)
def test_whole_lines_of_one_width_stay(lines: list[str]) -> None:
    assert joined([text(lines)]) == (text(lines), [])


@settings(max_examples=30)
@given(st.lists(st.sampled_from((1, 7, 79, 80, 81, 4096, LOOKED_AT)), min_size=1), st.sampled_from((1, 20)))
def test_pieces_do_not_matter(sizes: list[int], times: int) -> None:
    data = text(cut([*HEAD, *STEPS * times], 80))[:-1]
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        size = sizes[len(pieces) % len(sizes)] if len(pieces) < 200 else len(data)
        pieces.append(data[at : at + size])
        at += size
    assert joined(pieces) == joined([data])


def test_a_line_that_goes_on_for_ever_is_parted() -> None:
    data = text([*cut(STEPS, 80), *("x" * 80 for _ in range(20_000))])
    assert max(map(len, joined([data])[0].split(b"\n"))) <= (1 << 20) + 80


def test_what_was_found_holds_for_a_second_reading(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(text(cut([*HEAD, *STEPS * 400], 80)))
    source = Source(str(path))
    whole = b"".join(source.blocks())
    assert [problem.kind for problem in source.found] == ["lines_folded"]
    assert find_fold(whole[:LOOKED_AT]) is None
    for before in (0, 501, 30_000):
        again = source.excerpt(before)
        assert again is not None
        assert b"".join(again.blocks()).split(b"\n") == whole.split(b"\n")[before:]
        assert again.empty_lines == source.empty_lines


def test_records_of_one_form_that_are_cut_at_several_places_are_joined() -> None:
    """Nothing is cut inside a word or a number: but what is cut off differs, though the records are alike."""
    steps = [f"train Epoch [{n // 9}] [{58 * (n % 9)}/469] || accuracy=0.{4000 + n} - loss={9 / (n + 1):.3e}" for n in range(54)]
    width = len("train Epoch [0] [58/469] || accuracy=0.4001 ")
    assert told(joined([text(cut(steps, width))])[0]) == steps
