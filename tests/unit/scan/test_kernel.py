"""The kernel reads what the record-by-record path reads, refuses what is no program, and can be left out."""

import random
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.identity import find_difference, plain_body, read_both
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.records.envelope import MASK
from receipt_cli.records.split import RECORD_CAP
from receipt_cli.scan import segment
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.kernel import reader
from receipt_cli.scan.kernel.program import moving_digits
from receipt_cli.scan.layout import MAX_LENGTH, Layout
from receipt_cli.scan.presence import has_kernel, load_kernel

ROOT = Path(__file__).resolve().parents[3]
LOG = ROOT / "fixtures" / "logs" / "hf-trainer" / "bar-merged-v5.log"
NATIVE = load_kernel()
if NATIVE is None:
    pytest.skip("the kernel is not compiled", allow_module_level=True)
CLOSE = b"0123456789:;/.pP\x80\xb0\xb5\xb9\xff \x10\x1a"
"""Digits, and what differs from one by few bits."""


def layout_of(sample: bytes, fixed: list[tuple[int, int]]) -> Layout:
    return Layout(sample, tuple((a, b, sample[a:b]) for a, b in fixed), (), (), Outcome())


def program(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


EXTRA = (0, 0, 0, 0, 0)
"""How many literals are absent, their bytes, how many runs of digits are compared, whether a rule explains the record, and
whether longer bars have the layout, too."""


def one_event(table: int) -> bytes:
    """Return the program of a layout with an event of ``table`` that has no values."""
    return program(0, 0, 1, 0, 0, 0, 0, 1, 0, table, 0, 0, -1, -1, -1, 0)


def no_answer(number: int, text: bytes) -> Any:
    raise AssertionError(f"{number} was asked for {text!r}")


def drain(kernel: Any, buffer: bytes) -> list[tuple[int, int, int, int, int]]:
    """Read a block; return the records that are for Python."""
    kernel.begin(buffer, 0, 0)
    found = []
    while (record := kernel.next()) is not None:
        found.append(record)
    return found


def recognised(layouts: list[Layout], records: list[bytes]) -> list[int]:
    """Return the number of the layout as which each record is read, -1 for none."""
    kernel = NATIVE.Kernel((), no_answer, 5)
    for number, layout in enumerate(layouts):
        kernel.add(layout.sample, moving_digits(layout), one_event(number))
    assert drain(kernel, b"".join(record + b"\n" for record in records)) == []
    found = [-1] * len(records)
    for number in range(len(layouts)):
        rows = kernel.take(number, 0)
        for at in struct.unpack(f"{len(rows[0]) // 8}q", rows[0]) if rows is not None else ():
            found[at >> 17] = number
    kernel.finish()
    return found


def test_a_layout_is_expected_where_it_followed_before_and_never_trusted() -> None:
    step, time = b"step 12 loss 3", b"time 4"
    layouts = [layout_of(step, []), layout_of(time, []), layout_of(b"step 12 loss 3.5", [])]
    forms = [re.compile(rb"step \d\d loss \d"), re.compile(rb"time \d"), re.compile(rb"step \d\d loss \d\.\d")]
    others = [b"step 12 loss x", b"step 1: loss 3", b"stop 12 loss 3", b"", b" " + step, time + b" ", b"step 12 loss 3.", b"time"]
    rng = random.Random(3)
    usual = [step, time] * 20
    records = [
        rng.choice([*others, step, time, b"step 77 loss 8.1"]) if rng.random() < 0.3 else usual[n % 40] for n in range(4000)
    ]
    kernel = NATIVE.Kernel((), no_answer, 5)
    for number, layout in enumerate(layouts):
        kernel.add(layout.sample, moving_digits(layout), one_event(number))
    buffer = b"".join(record + rng.choice([b"\n", b"\n", b"\r"]) for record in records)
    assert drain(kernel, buffer + time) == []  # the last has no end
    found = [
        [at >> 17 for at in struct.unpack(f"{len(rows[0]) // 8}q", rows[0])]
        for rows in (kernel.take(number, 0) for number in range(3))
    ]
    records.append(time)
    assert found == [[n for n, record in enumerate(records) if form.fullmatch(record)] for form in forms]
    assert kernel.finish()[:2] == (len(records) - 1, buffer.count(b"\n"))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_records_are_recognised_as_byte_by_byte(data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 10_000)))
    layouts: list[Layout] = []
    for _ in range(data.draw(st.integers(1, 6))):
        sample = bytes(rng.choice(b"0123 .,ae1799") for _ in range(rng.randrange(1, 40)))
        spans = [run.span() for run in re.finditer(rb"[0-9]+", sample) if rng.random() < 0.4]
        layouts += [layout_of(sample, spans)]
        other = bytes(rng.choice(b"0123456789") if chr(byte).isdigit() else byte for byte in sample)
        layouts += [layout_of(other, spans)] if rng.random() < 0.5 else []
    records = []
    for _ in range(30):
        record = bytearray(rng.choice(layouts).sample)
        for at, byte in enumerate(record):
            if chr(byte).isdigit() and rng.random() < 0.3:
                record[at] = rng.choice(b"0123456789")
        if rng.random() < 0.5:
            record[rng.randrange(len(record))] = rng.choice(CLOSE)
        records.append(bytes(record))
    for record, number in zip(records, recognised(layouts, records), strict=True):
        fit = [one.sample.translate(MASK) == record.translate(MASK) and one.fits(record) for one in layouts]
        assert fit[number] if number >= 0 else not any(fit), record


@given(st.lists(st.binary(min_size=1, max_size=9), max_size=5), st.binary(max_size=60))
def test_literals_are_found(literals: list[bytes], record: bytes) -> None:
    kernel = NATIVE.Kernel(tuple(literals), no_answer, 5)
    assert kernel.contains(record) == any(literal in record for literal in literals)
    assert not literals or kernel.contains(record + literals[-1] + record)


QUIET = [b"part 4 of 5", b"no. 17 of 20", b"  ", b"caf\xe9 12", b"\xc3\xa9 7", b"7", b"x" * 600, b"1" * 513, b"ab"]


@given(st.lists(st.tuples(st.sampled_from(QUIET), st.text("0123456789", min_size=9, max_size=9)), max_size=60))
def test_of_forms_that_came_before_the_same_is_found(records: list[tuple[bytes, str]]) -> None:
    kernel = NATIVE.Kernel((b"part 4", b"17 of", b"12 ", b"7\x00", b"b1"), no_answer, 5)
    lines = []
    for record, digits in records:
        new = iter(digits.encode() * 100)
        lines.append(bytes(next(new) if 48 <= byte <= 57 else byte for byte in record))
    found = drain(kernel, b"".join(line + b"\n" for line in lines))
    wanted = [number for number, line in enumerate(lines) if any(literal in line for literal in (b"part 4", b"17 of", b"12 "))]
    assert [ordinal for _, _, ordinal, _, _ in found] == wanted
    blank, bad = sum(not line.strip() for line in lines), sum(b"\xe9" in line for line in lines)
    assert kernel.finish() == (len(lines), len(lines), blank, bad)


@given(st.lists(st.sampled_from([b"a", b" ", b"\t", b"\n", b"\r", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"key"]), max_size=30))
def test_ends_blanks_and_bytes_that_are_no_text_are_counted(parts: list[bytes]) -> None:
    buffer = b"".join(parts) + b"\n"
    kernel = NATIVE.Kernel((b"key",), no_answer, 5)
    found = drain(kernel, buffer)
    records = re.split(rb"[\n\r]", buffer)[:-1]
    assert [buffer[start:end] for start, end, *_ in found] == [record for record in records if b"key" in record]
    bad = [record for record in records if record.decode("utf-8", "replace").count("�")]
    assert kernel.finish() == (len(records), buffer.count(b"\n"), sum(not r.strip(b" \t") for r in records), len(bad))


@pytest.mark.parametrize(
    ("sample", "moving", "numbers"),
    [
        (b"", b"", one_event(0)),
        (b"a" * (MAX_LENGTH + 1), bytes(MAX_LENGTH + 1), one_event(0)),
        (b"a", b"\1", one_event(0)),
        (b"1", b"", one_event(0)),
        (b"1", b"\1", b""),
        (b"1", b"\1", one_event(0)[:-1]),
        (b"1", b"\1", one_event(0) + program(0)),
        (b"1", b"\1", one_event(1 << 40)),
        (b"1", b"\1", one_event(-1)),
        (b"1", b"\1", program(0, 0, 1 << 50, 0, *EXTRA)),
        (b"1", b"\1", program(0, 0, -1, 0, *EXTRA)),
        (b"1", b"\1", program(0, 0, 1, 0, *EXTRA, 0, 0, 2, 0, -1, -1, 0)),  # a prefix longer than the record
        (b"12:34:56", b"\0" * 8, program(0, 0, 1, 0, *EXTRA, 0, 0, 8, 0, 1, 8, 0)),  # a time that is too short
        (b"1", b"\1", program(0, 0, 1, 0, *EXTRA, 0, 0, 1, -1, -1, -1, 0)),  # a prefix that nobody reads
        (b"1", b"\1", program(0, 0, 1, 1, *EXTRA, 0, 0, 0, -1, -1, -1, 1, 0, 0, 0, 2, -1, 1, 0, 0, 0, 0)),  # behind the end
        (b"1", b"\1", program(0, 0, 1, 1, *EXTRA, 0, 0, 0, -1, -1, -1, 1, 9, 0, 0, 1, -1, 1, 0, 0, 0, 0)),  # of no kind
        (b"1", b"\1", program(0, 0, 1, 1, *EXTRA, 0, 0, 0, -1, -1, -1, 1, 1, 0, 0, 1, -1, 1, 0, 0, 0, 0)),  # unread
        (b"1", b"\1", program(0, 0, 1, 1, *EXTRA, 0, 0, 0, -1, -1, -1, 0)),  # fewer values than were announced
        (b"1", b"\1", program(1, 0, 0, 0, *EXTRA, 1 << 20)),
        (b"1", b"\1", program(0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 49, 49)),  # a literal longer than the record
        (b"11", b"\1\1", program(0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 2, 49, 49)),  # longer than was announced
        (b"1", b"\1", program(0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 256)),  # of no bytes
        (b"1", b"\1", program(0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0)),  # a number behind the end
        (b"1", b"\1", program(0, 1, 0, 0, *EXTRA, -5)),
    ],
)
def test_what_is_no_program_is_refused(sample: bytes, moving: bytes, numbers: bytes) -> None:
    kernel = NATIVE.Kernel((), no_answer, 5)
    with pytest.raises(ValueError):
        kernel.add(sample, moving, numbers)
    assert drain(kernel, b"1\n" + sample + b"\n") == []
    assert kernel.take(0, 0) is None and kernel.sizes() == (0, 0)


@given(st.binary(max_size=40), st.lists(st.integers(-3, 70), max_size=40))
def test_any_numbers_are_a_program_or_refused(sample: bytes, numbers: list[int]) -> None:
    kernel = NATIVE.Kernel((), lambda number, text: None, 5)
    try:
        kernel.add(sample, bytes(chr(byte).isdigit() for byte in sample), program(*numbers))
    except ValueError:
        return
    assert all(len(record) == 5 for record in drain(kernel, sample + b"\n"))
    kernel.take(0, 0)


def test_a_layout_has_neither_a_literal_at_its_place_nor_other_digits_that_are_compared() -> None:
    kernel = NATIVE.Kernel((b"a",), no_answer, 5)
    numbers = (0, 0, 1, 0, 1, 2, 1, 1, 0, 0, 2, *b"a5", 1, 2, 4, 2, 0b10, 0, 0, 0, -1, -1, -1, 0)
    kernel.add(b"a12/21", b"\0\1\1\0\1\1", program(*numbers))  # the second number begins with the last digit of the first
    found = drain(kernel, b"a12/21\na34/43\na34/34\na34/12\na52/21\na77/77\n")
    assert [start // 7 for start, *_ in found] == [2, 3, 4, 5]


def test_calls_in_another_order_are_refused() -> None:
    kernel = NATIVE.Kernel((), no_answer, 5)
    with pytest.raises(RuntimeError):
        kernel.next()
    kernel.begin(b"1\n", 0, 0)
    with pytest.raises(RuntimeError):
        kernel.begin(b"1\n", 0, 0)
    kernel.finish()
    with pytest.raises(TypeError):
        kernel.begin("text", 0, 0)
    with pytest.raises((TypeError, ValueError)):
        NATIVE.Kernel((b"",), no_answer, 5)
    with pytest.raises(TypeError):
        NATIVE.Kernel([b"a"], no_answer, 5)
    with pytest.raises(TypeError):
        NATIVE.Kernel((1,), no_answer, 5)


ASKED = program(0, 0, 1, 1, *EXTRA, 0, 0, 0, -1, -1, -1, 1, 1, 0, 0, 1, 7, 1, 0, 0, 0, 0)


@pytest.mark.parametrize("answer", ["text", 1 << 70, (1, 2), (1, "x", 2.0, True), object()])
def test_an_answer_of_another_type_is_an_error(answer: Any) -> None:
    kernel = NATIVE.Kernel((), lambda number, text: answer, 5)
    kernel.add(b"1", b"\1", ASKED)
    kernel.begin(b"5\n", 0, 0)
    with pytest.raises((TypeError, OverflowError)):
        kernel.next()
    kernel.finish()
    assert kernel.take(0, 0) is None


def test_an_error_of_whoever_answers_is_raised_and_the_kernel_can_be_used_further() -> None:
    failing = True

    def answer(number: int, text: bytes) -> float:
        assert number == 7
        with pytest.raises(RuntimeError, match="in use"):
            kernel.take(0, 0)
        if failing:
            raise ZeroDivisionError
        return float(text) / 2

    kernel = NATIVE.Kernel((), answer, 5)
    kernel.add(b"1", b"\1", ASKED)
    kernel.begin(b"5\n", 0, 0)
    with pytest.raises(ZeroDivisionError):
        kernel.next()
    kernel.finish()
    failing = False
    assert drain(kernel, b"5\n7\n5\n") == []
    assert kernel.take(0, 0)[4] == [(0, struct.pack("3d", 2.5, 3.5, 2.5), None)]
    assert kernel.sizes() == (1, 2)


def test_texts_are_a_form_and_digits_and_rows_are_counted_behind_others() -> None:
    kernel = NATIVE.Kernel((), no_answer, 5)
    form = (4, 0, 0, 0, -1, 3, 0, 0, 0, 0)
    digits = [(6, 1, start, end, -1, 1, 0, 0, 0, 0) for start, end in ((1, 5), (6, 8))]
    event = (0, 0, 0, -1, -1, -1, 3, *form, *digits[0], *digits[1])
    kernel.add(b"a1.25 30", b"\0\1\0\1\1\0\1\1", program(0, 0, 1, 3, *EXTRA, *event))
    kernel.add(b"b", b"\0", one_event(0))
    assert drain(kernel, b"a1.25 30\nb\na9.99 01\n") == []
    columns = kernel.take(0, 10)[4]
    assert columns == [(0, program(3, 3), program(10, 12)), (1, program(125, 30, 999, 1), None)]


def test_a_record_that_was_handed_back_can_be_read_again() -> None:
    kernel = NATIVE.Kernel((b"5",), no_answer, 5)
    kernel.begin(b"  \n\xff5\n5\n", 0, 0)
    with pytest.raises(RuntimeError, match="handed back"):
        kernel.again()
    for _ in range(2):
        assert kernel.next() == (3, 5, 1, 2, 1)
        kernel.again()
        with pytest.raises(RuntimeError, match="handed back"):
            kernel.again()
    kernel.add(b"\xff5", b"\0\1", one_event(0))
    assert kernel.next() == (6, 7, 2, 3, 0)
    assert kernel.next() is None
    assert kernel.finish() == (3, 3, 1, 0)


def hf_lines(count: int) -> list[bytes]:
    rng = random.Random(5)
    return [
        f"{{'loss': {rng.random():.{1 + k // 40}f}, 'learning_rate': {rng.random():.{1 + k % 3}f}, 'epoch': 0.{k}}}".encode()
        for k in range(count)
    ]


def assert_same(blocks: list[bytes]) -> None:
    fast, pure = read_both(shipped(), blocks)
    assert find_difference(fast, pure) is None


def test_more_layouts_and_texts_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LAYOUTS", 4)
    monkeypatch.setattr(reader, "MAX_MEANINGS", 2)
    lines = hf_lines(400)
    assert_same([b"\n".join(lines[at : at + 50]) + b"\n" for at in range(0, 400, 50)] * 2)


STEP = b"iter 10: loss 3.7824, time 10.19ms, mfu 0.02%"


@pytest.mark.parametrize(
    "noise",
    [b"\0", b"\0" * 70_000, b"\x08", b"\r", b"\r\r\n", b"\x1b[31m", b"\x1b", b"\xff\xfe", b"x" * (RECORD_CAP + 9), b"^[[A", b""],
    ids=repr,
)
def test_hostile_bytes_beside_known_records(noise: bytes) -> None:
    lines = [STEP.replace(b"10", b"%d" % number) for number in range(10, 40)]
    assert_same([(noise + b"\n").join(lines), noise, b"\n" + (b"\n" + noise).join(lines) + noise, noise.join(lines)])


@pytest.mark.parametrize("length", [MAX_LENGTH - 1, MAX_LENGTH, MAX_LENGTH + 1])
def test_records_as_long_as_one_with_a_layout_may_be(length: int) -> None:
    line = STEP + b" " * (length - len(STEP))
    assert_same([b"\n".join(line.replace(b"10", b"%d" % number) for number in range(10, 30)) + b"\n"])


@pytest.mark.parametrize("each", [5, 34])
def test_of_markers_that_fire_often_the_first_and_the_last_texts_are_kept(each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = 32
    for module in (segment, reader):
        monkeypatch.setattr(module, "KEPT_HITS", kept)
    texts = iter(f"torch.OutOfMemoryError: CUDA out of memory. Tried {number}\n".encode() for number in range(10_000))
    blocks = [b"".join(next(texts) for _ in range(each)) + b"Killed\n" + STEP + b"\n" for _ in range(11)]
    assert_same(blocks)
    engine = Engine(shipped(), load_catalogue())
    scanned = engine.scan(blocks, whole=True)
    hits = max(scanned.body.markers.values(), key=lambda found: len(found.at))
    assert len(hits.at) == 11 * each and len(hits.texts) == min(11 * each, 2 * kept)


def test_the_kernel_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_kernel() and Engine(shipped(), load_catalogue()).kernel is not None
    monkeypatch.setenv("RECEIPT_KERNEL", "0")
    assert not has_kernel() and Engine(shipped(), load_catalogue()).kernel is None
    monkeypatch.delenv("RECEIPT_KERNEL")
    monkeypatch.setitem(sys.modules, "receipt_cli.scan.kernel._native", None)
    monkeypatch.delattr("receipt_cli.scan.kernel._native")
    assert not has_kernel() and Engine(shipped(), load_catalogue()).kernel is None


def test_receipts_are_the_same_without_the_kernel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "receipt_cli", "parse", str(LOG), "--json"]
    with_kernel, without = (
        subprocess.run(command, env={"RECEIPT_KERNEL": kernel}, cwd=ROOT, capture_output=True, check=True).stdout
        for kernel in ("1", "0")
    )
    assert with_kernel == without


def test_bars_of_any_cells_have_a_layout_in_common() -> None:
    bars = [("█" * n + cell).ljust(width) for width in (10, 40) for n in range(1, width) for cell in " ▏▌▉"]
    lines = [
        f"[rank{n % 2}]: {n % 90 + 10}%|{bar}| {n % 900 + 100}/1000 [00:10<01:00,  1.{n % 90 + 10}it/s, loss=0.{n % 900 + 100}]"
        for n, bar in enumerate(bars)
    ]
    block = "\n".join([*lines, ""]).encode()
    engine = Engine(shipped(), load_catalogue())
    read, count = engine.read_record, 0

    def counted(*record: Any) -> None:
        nonlocal count
        count += 1
        read(*record)

    engine.read_record = counted  # type: ignore[method-assign]
    body, _ = engine.finish(engine.scan([block]))
    pure = Engine(shipped(), load_catalogue(), by_layout=False)
    assert find_difference(plain_body(body), plain_body(pure.finish(pure.scan([block]))[0])) is None
    assert count <= 20 and len(lines) == 2 * len(bars) // 2 > 180
