"""Any bytes → records: what is found does not depend on the way it is looked for, and no line is lost or made up."""

from receipt_cli.records.heuristics import MAX_SEEN, count_step_lines, metric_lines
from receipt_cli.records.split import (
    RECORD_CAP,
    Walk,
    cap_records,
    count_blank,
    count_ends,
    display_lines,
    first_end,
    invalid_records,
    last_end,
    normalise,
)
from receipt_cli.redaction.text import log_tail
from tests.fuzz.feed import Feed


def target(data: bytes) -> None:
    feed = Feed(data)
    repeats = feed.pick((*(1,) * 240, *(3,) * 13, 30, 100, 300))
    raw = (feed.rest() * repeats)[: 4 * RECORD_CAP]
    end = last_end(raw)
    if end:
        assert raw[end - 1 : end] in (b"\n", b"\r") and 0 < first_end(raw[:end]) <= end
    capped, cuts = cap_records(raw)
    assert len(raw) - len(capped) == sum(length - RECORD_CAP for _, length in cuts)
    assert all(len(record) <= RECORD_CAP for line in capped.split(b"\n") for record in line.split(b"\r"))
    for offset, _ in cuts:
        assert offset == 0 or capped[offset - 1 : offset] in (b"\n", b"\r")
    buffer = normalise(raw)
    assert buffer.count(b"\n") == raw.count(b"\n")
    whole = raw[:end]
    assert count_ends(whole) == (whole.count(b"\n"), normalise(whole).count(b"\r"))
    redraws = b"\r" in buffer
    records = [r for line in buffer.split(b"\n") for r in (line.split(b"\r") if redraws else [line])]
    assert len(invalid_records(buffer, redraws)) == sum(
        record.decode("utf-8", "replace").encode() != record for record in records
    )
    walk, at, found = Walk(buffer, redraws), 0, []
    while at <= len(buffer):
        start, stop = walk.around(at)
        found.append(buffer[start:stop])
        at = stop + 1
    assert found == records
    assert count_blank(buffer + b"\n") == sum(not record.strip(b" \t") for record in records)
    assert len(metric_lines(buffer, MAX_SEEN)) <= MAX_SEEN and count_step_lines(buffer, MAX_SEEN) <= MAX_SEEN
    assert len(display_lines(raw, 5)) <= 5
    for line in log_tail(raw[: 32 << 10], cut=bool(repeats > 1)):
        line.encode()
        assert not any(ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 for letter in line)


def seeds() -> list[bytes]:
    lines = b"iter 1: loss 2.5\nstep 2 loss=nan\r\n 12%|## | 5/40 [00:01<00:07]\r 13%|\x08\x08\x08x\n\n \t\n"
    odd = b"\x1b[31mred\x1b[0m\n\x1b]0;title\x07x\n^[[A^[OB\n\x00\x00\n\xff\xfe\n\xe2\x80\xaeabc\n\x1bP1;2\x1b\\x\n\x1b\r\n"
    return [bytes([0]) + lines, bytes([0]) + odd, bytes([254]) + lines, bytes([254]) + b"x" * 900, bytes([240]) + odd, b""]
