"""Lines that a collector packed come out as they were printed, behind their time, however the bytes arrive."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.io.envelopes import CUT_AT, LONGEST, Unpacker
from receipt_cli.io.source import Source
from receipt_cli.scan.presence import load_kernel

TIME = "2026-01-02T03:04:05.123456789Z"
HEAD = f"{TIME} stdout F "
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: x'


def unpack(*blocks: bytes) -> bytes:
    unpacker = Unpacker()
    return b"".join(map(unpacker.feed, blocks)) + unpacker.rest()


def packed(**keys: object) -> bytes:
    return json.dumps(keys).encode()


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param(packed(log="it 1\n", stream="stdout", time=TIME), HEAD + "it 1", id="docker"),
        pytest.param(packed(log="50%\r99%\n", stream="stdout", attrs={"tag": "a"}, time=TIME), HEAD + "50%\r99%", id="bar"),
        pytest.param(packed(date=1767323045.25, stream="stderr", log="it 1"), "1767323045.250000 stderr F it 1", id="fluent"),
        pytest.param(packed(labels={"app": "a"}, line="it 1", timestamp=TIME), TIME + " it 1", id="loki"),
        pytest.param(packed(log="it 1 of 9", message="it", stream="stdout", time=TIME), HEAD + "it 1 of 9", id="both"),
        pytest.param(
            packed(message="it 1", log={"offset": 3}, stream="stdout", **{"@timestamp": TIME}), HEAD + "it 1", id="filebeat"
        ),
        pytest.param(packed(textPayload="it 1", severity="ERROR", timestamp=TIME), TIME + " it 1", id="cloud"),
        pytest.param(packed(jsonPayload={"message": "it 1"}, timestamp=TIME), TIME + " it 1", id="cloud-json"),
        pytest.param(
            packed(asctime="2026-01-02 03:04:05,1", levelname="INFO", message="it 1", lineno=3),
            "2026-01-02 03:04:05,1 INFO: it 1",
            id="logger",
        ),
        pytest.param(packed(level="error", msg="bad", exc_info=TRACE), "ERROR: bad\r" + TRACE.replace("\n", "\r"), id="raised"),
        pytest.param(
            packed(MESSAGE="it 1", _HOSTNAME="n1", SYSLOG_IDENTIFIER="train", _PID="7", __REALTIME_TIMESTAMP="1767323045123456"),
            "1767323045.123456 n1 train[7]: it 1",
            id="journal",
        ),
        pytest.param(
            packed(MESSAGE=list(b"\x1b[1mit 1"), __REALTIME_TIMESTAMP="1767323045123456"),
            "1767323045.123456 \x1b[1mit 1",
            id="bytes",
        ),
        pytest.param(
            packed(line=json.dumps({"log": "it 1\n", "stream": "stdout", "time": TIME}), timestamp="2027-01-02T03:04:05Z"),
            HEAD + "it 1",
            id="two",
        ),
        pytest.param(
            b"2026-01-02T03:04:05+00:00\tkube.a\t" + packed(message="it 1"), "2026-01-02T03:04:05+00:00 it 1", id="fluentd"
        ),
        pytest.param(packed(log=f"{TRACE}\n", stream="stdout", time=TIME), HEAD + TRACE.replace("\n", "\r"), id="several-lines"),
    ],
)
def test_a_packed_line_comes_out_behind_its_time(line: bytes, want: str) -> None:
    assert unpack(b"first\n" + line + b"\nlast\n").decode() == f"first\n{want}\nlast\n"
    assert unpack(line).decode() == want


@pytest.mark.parametrize(
    "line",
    [
        packed(step=1, loss=2.5, message="it 1", time=TIME),
        packed(message="CUDA out of memory"),
        packed(prompt="why?", log=TRACE, label="bug"),
        packed(message={"role": "user"}, time=TIME),
        packed(time=TIME, level="INFO"),
        packed(log=5, stream="stdout", time=TIME),
        packed(log="it 1", stream="stdout", time=TIME)[:-1],
        b'{"log":"it 1","stream":"stdout",' + b'"time":"2026}',
        b"{'log': 'it 1', 'stream': 'stdout'}",
        b'["log", "it 1"]',
        b'{"log": "' + b"[" * 90_000 + b'", "x": ' + b"[" * 90_000 + b"}",
    ],
)
def test_an_object_that_packs_no_line_stays_as_it_is(line: bytes) -> None:
    assert unpack(line + b"\n") == line + b"\n"


def test_an_object_is_unpacked_whatever_stands_in_other_lines() -> None:
    line = b'{ "log": "it 1", "stream": "stdout", "time": "%b" }\n' % TIME.encode()
    others = [b"it 0\n", b'sees {"log": "x"} within\n', b"cut by stdout P and P:\n", b'INFO {"log": "y"}\n', b"{\n", b"}\n"]
    want = HEAD.encode() + b"it 1\n"
    for other in others:
        assert unpack(other, line, other) == unpack(other + line + other) == other + want + other


def test_lines_that_were_cut_are_whole_again_and_keep_their_places() -> None:
    cri = [
        f"{TIME} {stream} {kind} {text}\n"
        for stream, kind, text in (
            ("stdout", "P", "step 1 "),
            ("stderr", "F", "warning"),
            ("stdout", "P:a", "loss "),
            ("stdout", "F", "2.5"),
            ("stdout", "F", "end"),
        )
    ]
    want = f"\n{TIME} stderr F warning\n\n{HEAD}step 1 loss 2.5\n{HEAD}end\n"
    assert unpack("".join(cri).encode()).decode() == want
    assert unpack("".join(cri[:1]).encode()).decode() == f"\n{HEAD}step 1 "
    long = "x" * CUT_AT
    docker = b"\n".join(packed(log=text, stream="stdout", time=TIME) for text in (long, long, "tail\n", "next\n")) + b"\n"
    assert unpack(docker).decode() == f"\n\n{HEAD}{long}{long}tail\n{HEAD}next\n"


@pytest.mark.parametrize("native", [None, load_kernel()])
def test_an_entry_without_a_line_end_is_a_part_wherever_docker_keeps_them(native: object) -> None:
    whole = ["begin\n", "step 1: loss 2.5, time 124.50ms\n", "end\n"]
    want = [f"{HEAD}{line}" for line in whole]
    for at in range(1, len(whole[1]) - 1):
        texts = [whole[0], whole[1][:at], whole[1][at:], whole[2]]
        lines = [json.dumps({"log": text, "stream": "stdout", "time": TIME}, separators=(",", ":")) + "\n" for text in texts]
        for size in (1, 100, 1 << 20):
            data, unpacker = "".join(lines).encode(), Unpacker(native)
            pieces = [data[start : start + size] for start in range(0, len(data), size)]
            made = b"".join(map(unpacker.feed, pieces)) + unpacker.rest()
            assert made.decode() == f"{want[0]}\n{want[1]}{want[2]}"
            assert list(unpacker.emptied) == [2]
    stripped = [packed(log=text.rstrip(), stream="stdout", time=TIME).decode() + "\n" for text in whole]
    assert unpack("".join(stripped).encode()).decode() == "".join(want)


ROWS = ["  1/20   3.4G  0.12", "0it [00:00, ?it/s]", "0 train 10.9", "-----0------", "0.5 1e-3", "", "-0.5", "loss: 2.5"]
LATER = "{:.6f} {}\n"


def timed(lines: list[str], seconds: float = 0.2) -> str:
    return "".join(LATER.format(number * seconds + 0.000123, line) for number, line in enumerate(lines))


@pytest.mark.parametrize("times", [1, 40, 400])
@pytest.mark.parametrize("size", [7, 1000, 1 << 20])
def test_seconds_before_every_line_are_a_head(times: int, size: int) -> None:
    text = timed(ROWS * times)
    want = "".join(line.replace(" ", "s\t", 1) for line in text.splitlines(keepends=True))
    assert unpack(*(text[at : at + size].encode() for at in range(0, len(text), size))).decode() == want


@pytest.mark.parametrize(
    "text",
    [
        timed(["0.5 1e-3", "0.4 1e-3"] * 9),  # numbers alone
        "".join(timed(ROWS).splitlines(keepends=True)[::-1]),  # they fall
        timed(ROWS) + "step 1\n",
        timed(ROWS[-2:]),
        "loss\n" + timed(ROWS),
        "".join(f"{n / 5:.5f} loss 2\n" for n in range(9)),
    ],
)
def test_numbers_before_some_lines_or_numbers_alone_are_no_head(text: str) -> None:
    assert unpack(text.encode()).decode() == text


def test_the_lines_that_parts_leave_empty_are_known() -> None:
    parts = [f"{TIME} stdout {kind} {text}\n".encode() for kind, text in (("F", "a"), ("P", "b"), ("P", "c"), ("F", "d"))]
    for blocks in ([b"".join(parts) * 2], parts * 2):
        unpacker = Unpacker()
        assert b"".join(map(unpacker.feed, blocks)).count(b"\n") == 8
        assert list(unpacker.emptied) == [2, 3, 6, 7]


@pytest.mark.parametrize(
    "events",
    [
        json.dumps(
            {
                "events": [{"timestamp": 1767323045123 + n, "message": f"it {n}\n", "ingestionTime": 5} for n in range(3)],
                "x": "y",
            },
            indent=4,
        ),
        json.dumps(
            [{"insertId": "a", "timestamp": f"2026-01-02T03:04:05.12{3 + n}Z", "textPayload": f"it {n}"} for n in range(3)],
            indent=2,
        ),
    ],
)
def test_of_a_document_of_events_their_lines_stay(events: str) -> None:
    lines = unpack(events.encode()).decode().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["it 0", "it 1", "it 2"]
    assert {line.split(" ")[0][:7] for line in lines} in ({"1767323"}, {"2026-01"})


def test_a_document_of_something_else_stays_as_it_is() -> None:
    for text in (
        '{\n  "batch": 5,\n  "message": "CUDA out of memory"\n}\nstep 1\n',
        "{\n",
        "[\n  1,\n  2\n]\n",
        "[\n" + "x\n" * 9000,
    ):
        assert unpack(text.encode()).decode() == text


LINES = st.sampled_from(
    [
        packed(log="it 1\n", stream="stdout", time=TIME),
        packed(log="y" * CUT_AT, stream="stderr", time=TIME),
        packed(step=1, message="a"),
        f"{TIME} stdout P one ".encode(),
        f"{TIME} stdout F two".encode(),
        f"{TIME} stderr P three".encode(),
        b"plain",
        b"\xef\xbb\xbfmark",
        b"",
        b"{",
        b"\r",
        b"a\rb",
        b'    "timestamp": 1767323045123,',
        b'    "message": "it 1",',
        b'  "events": [',
        b"[",
        b"\xc3\xa9\x1b[0m\0",
    ]
)


@given(st.lists(LINES, max_size=12), st.lists(st.integers(0, 60_000), max_size=6), st.booleans())
def test_bytes_may_arrive_in_any_pieces(lines: list[bytes], cuts: list[int], ended: bool) -> None:
    text = b"\n".join(lines) + b"\n" * ended
    at = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    unpacker = Unpacker()
    given = b""
    for begin, end in pairwise(at):
        given += unpacker.feed(text[begin:end])
        assert given + unpacker.rest() == unpack(text[:end])
    if b'"events": [' not in text:
        assert (given + unpacker.rest()).count(b"\n") == text.count(b"\n")


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    unpacker = Unpacker()
    blocks = [b"x" * LONGEST, b"y" * LONGEST, b"z\n" + packed(log="it 1\n", stream="stdout", time=TIME) + b"\n"]
    assert b"".join(map(unpacker.feed, blocks)) == blocks[0] + blocks[1] + b"z\n" + HEAD.encode() + b"it 1\n"
    assert unpacker.rest() == b""


def test_a_source_gives_lines_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(packed(log="it 1\n", stream="stdout", time=TIME) + b"\n")
    source = Source(str(path))
    assert b"".join(source.blocks()).decode() == HEAD + "it 1\n"
    assert source.size_bytes == path.stat().st_size
